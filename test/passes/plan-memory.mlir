// RUN: sluice-opt %s --sluice-plan-memory="strategy=keep device=%S/inputs/round.json" | FileCheck %s --check-prefixes=CHECK,KEEP
// RUN: sluice-opt %s --sluice-plan-memory="strategy=greedy,min-copy=1 device=%S/inputs/round.json budget=80%%act" | FileCheck %s --check-prefixes=CHECK,GREEDY
// RUN: sluice-opt %s --sluice-plan-memory="strategy=chen device=%S/inputs/round.json budget=164096" | FileCheck %s --check-prefixes=CHECK,CHEN
// RUN: not sluice-opt %s --sluice-plan-memory="strategy=greedy,min-copy=1 device=%S/inputs/round.json budget=60%%" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: sluice-opt %s --sluice-plan-memory="strategy=greedy,min-copy=1 device=%S/inputs/round.json budget=147712" | FileCheck %s --check-prefix=SMALLEST
// Four products of 16384-byte tensors, each op 1 ms, each copy 16 us. Base: w, momentum, two batch slots each of x and target, and 256 bytes for
// the loss: 98560. Keep needs fc1_y to fc4_y and the loss gradient at once: 98560 + 5 * 16384 = 180480. 80% of the activations is one tensor less.

// CHECK: func.func @step
// KEEP-SAME: train.plan = #train.plan<strategy = "keep", budget = 1152921504606846976, arena = 180480, keep_arena = 180480, base = 98560, floor = {{.*}} decisions[
// KEEP-SAME: <storage = "fc1_y", action = keep, bytes = 16384, first = 0, last = 8, node = "/fc1/Gemm"
// KEEP-NOT: recomputes
// The first of equals lies lowest, at the end of the base.
// KEEP-SAME: places[<storage = "fc1_y", step = 0, offset = 98560>, <storage = "fc2_y", step = 1, offset = 114944>

// The earliest-born leaves when it is made, after op 0; its copy hides beside its reader, op 1. It comes back when op 6 has given up fc3_y, behind op 7.
// GREEDY-SAME: train.plan = #train.plan<strategy = "greedy", budget = 164096, arena = 164096, keep_arena = 180480, base = 98560,
// Both copies hide: 11 ops of 1 ms.
// GREEDY-SAME: seconds = 0.011{{0*[0-9]?}} : f64, keep_seconds
// GREEDY-SAME: <storage = "fc1_y", action = offload, bytes = 16384, first = 0, last = 8, node = "/fc1/Gemm"{{.*}} absences[<leave_after = 0, free_before = 2, return_after = 6, needed_by = 8>]>
// GREEDY-SAME: <storage = "fc2_y", action = keep
// GREEDY-SAME: <storage = "fc3_y", action = keep
// GREEDY-SAME: <storage = "fc4_y", action = keep

// Every second tensor is made again right before its backward reader: two ops more.
// CHEN-SAME: seconds = 0.013{{0*[0-9]?}} : f64
// CHEN-SAME: <storage = "fc1_y", action = recompute
// CHEN-SAME: <storage = "fc2_y", action = keep
// CHEN-SAME: <storage = "fc3_y", action = recompute
// CHEN-SAME: <storage = "fc4_y", action = keep
// CHEN-SAME: recomputes[<before 6 : 2>, <before 8 : 0>]
// What runs again begins to live once more: op 2 as step 6, op 0 as step 9.
// CHEN-SAME: places[{{.*}}<storage = "fc3_y", step = 6, offset = {{[0-9]+}}>{{.*}}<storage = "fc1_y", step = 9, offset = {{[0-9]+}}>

// A product reads two tensors and writes one, so nothing goes below 98560 + 3 * 16384; the budget it names works.
// SMALL: error: a budget of 108288 bytes is too small for strategy 'greedy' (keep needs 180480, of which 98560 live through the whole step; no plan of whole tensors goes below 147712)
// SMALL: note: smallest feasible budget: 147712 bytes
// SMALLEST: train.plan = #train.plan<strategy = "greedy", budget = 147712, arena = 147712

train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
func.func @step(%x: tensor<64x64xf32> {train.name = "x"}, %target: tensor<64x64xf32> {train.name = "target"}) -> tensor<f32> {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64, train.stage = 0 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %w {train.forward = 1 : i64, train.stage = 1 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %w {train.forward = 2 : i64, train.stage = 2 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc3/Gemm")
  %d = train.matmul %c, %w {train.forward = 3 : i64, train.stage = 3 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc4/Gemm")
  %loss = train.mse %d, %target {train.forward = 4 : i64, train.stage = 4 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32> loc("loss")
  %dd = train.loss_backward mse %d, %target {train.backward = 4 : i64, train.stage = 4 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("loss")
  %dc = train.matmul %dd, %c {train.backward = 3 : i64, train.stage = 3 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc4/Gemm")
  %db = train.matmul %dc, %b {train.backward = 2 : i64, train.stage = 2 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc3/Gemm")
  %da = train.matmul %db, %a {train.backward = 1 : i64, train.stage = 1 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc2/Gemm")
  %dw = train.matmul %da, %x {train.backward = 0 : i64, train.stage = 0 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("/fc1/Gemm")
  %old1 = train.read @w : tensor<64x64xf32>
  %old1_0 = train.read @"w/momentum" : tensor<64x64xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64, train.stage = 0 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 0>} : tensor<64x64xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}
