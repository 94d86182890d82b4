// RUN: sluice-opt %s --sluice-plan-memory="strategy=keep" | FileCheck %s
// RUN: sluice-opt %s --sluice-plan-memory="strategy=keep" --sluice-apply-plan | FileCheck %s --check-prefix=PLACED
// RUN: not sluice-opt %s --sluice-plan-memory="strategy=keep budget=65800" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: sluice-opt %s --sluice-plan-memory="strategy=keep budget=114944" | FileCheck %s
// Evaluation, which runs in the same arena, holds three tensors of 16384 bytes; the step holds none: what keep needs, the least budget and
// percentages count both. Base: two slots each of x and target and 256 bytes for the loss.

// CHECK: train.plan = #train.plan<strategy = "keep", {{.*}}arena = 65792, keep_arena = 114944, base = 65792, floor = 114944
// SMALL: error: a budget of 65800 bytes is too small for strategy 'keep' (keep needs 114944, of which 65792 live through the whole step; no plan of whole tensors goes below 114944)
// SMALL: note: smallest feasible budget: 114944 bytes
func.func @step(%x: tensor<64x64xf32> {train.name = "x"}, %target: tensor<64x64xf32> {train.name = "target"}) -> tensor<f32> {
  %loss = train.mse %x, %target {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
// Its tensors have places above the base, which apply-plan hands on.
// CHECK: @evaluate
// CHECK-SAME: #train.plan<strategy = "keep", {{.*}}arena = 114944, {{.*}}places{{ ?}}[<storage = "softmax_y", step = 0, offset = 65792>
// PLACED: @evaluate
// PLACED-NEXT: train.softmax {{.*}}train.offsets = array<i64: 65792, -1>
func.func @evaluate(%x: tensor<64x64xf32> {train.name = "x"}, %target: tensor<64x64xf32> {train.name = "target"}) -> tensor<f32> {
  %a = train.softmax %x {axis = 1 : i64, train.forward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = train.softmax %x {axis = 1 : i64, logarithm = true, train.forward = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = train.matmul %a, %b {train.forward = 2 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %c, %target {train.forward = 3 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
