// RUN: sluice-opt %s --sluice-apply-plan | FileCheck %s
// RUN: sluice-opt %s --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s --check-prefix=PLACED
// RUN: sluice-opt %s | sluice-opt | FileCheck %s --check-prefix=AGAIN
// RUN: sed 's/step = 2, offset = 2048/step = 2, offset = 1792/' %s | not sluice-opt --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots 2>&1 | FileCheck %s --check-prefix=CONFLICT
// The plan of apply-plan.mlir with its places. Steps are positions until op 2 runs again as step 6, so that op 6 is step 7. The base is 7 times 256
// bytes: 1792. fc2_y lives from step 1 to 8 and has the highest bytes, which no packing would choose; fc1_y is away from step 3 on and comes back
// before step 8 to the same ones. The plan does not place the gradient of w, for which fc2_y's are free again.

// AGAIN: places[<storage = "fc1_y", step = 0, offset = 1792>, <storage = "fc2_y", step = 1, offset = 2560>,
// AGAIN-SAME: <form = workspace, step = 3, offset = 2304>]

// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul {{.*}}train.offsets = array<i64: 1792, -1>
// CHECK: train.offload %[[A]]
// CHECK: train.matmul {{.*}}train.offsets = array<i64: 1792, 2304>
// CHECK: train.matmul {{.*}}train.offsets = array<i64: 1792, -1>, train.recompute
// CHECK: train.prefetch {{.*}}train.offsets = array<i64: 1792, -1>

// PLACED-LABEL: sched.program @step device(2816)
// PLACED-DAG: "fc1_y" device bytes(256) at(1792) live(1, 4)
// PLACED-DAG: "fc2_y" device bytes(256) at(2560)
// PLACED-DAG: "fc3_y" device bytes(256) at(2048)
// PLACED-DAG: "fc4_y" device bytes(256) at(1792)
// PLACED-DAG: "fc4_y_scratch" device bytes(200) at(2304)
// PLACED-DAG: "loss_grad" device bytes(256) at(2048)
// PLACED-DAG: "fc3_again" device bytes(256) at(1792)
// PLACED-DAG: "fc1_y_back" device bytes(256) at(1792)
// PLACED-DAG: "fc4_grad" device bytes(256) at(2304)
// PLACED-DAG: "fc3_grad" device bytes(256) at(2048)
// PLACED-DAG: "fc2_grad" device bytes(256) at(2304)

// CONFLICT: 'sched.buffer' op the plan puts 'fc1_y' at bytes 1792 to 2048 in steps 1 to 4 and 'fc3_y' at bytes 1792 to 2048 in steps 4 to 5, where they share bytes while both live
// CONFLICT: leave one of the places out, and it is chosen here

train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "by hand" decisions [
    <storage = "fc1_y", action = offload absences [<leave_after = 1, free_before = 3, return_after = 6, needed_by = 8>]>,
    <storage = "fc3_y", action = recompute>]
  recomputes [<before 6 : 2>]
  places [<storage = "fc1_y", step = 0, offset = 1792>, <storage = "fc2_y", step = 1, offset = 2560>, <storage = "fc3_y", step = 2, offset = 2048>,
    <storage = "fc4_y", step = 3, offset = 1792>, <storage = "loss_grad", step = 5, offset = 2048>, <storage = "fc3_y", step = 6, offset = 1792>,
    <storage = "fc4_grad", step = 7, offset = 2304>, <storage = "fc1_y", step = 8, offset = 1792>, <storage = "fc3_grad", step = 8, offset = 2048>,
    <storage = "fc2_grad", step = 9, offset = 2304>, <form = workspace, step = 3, offset = 2304>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %w {train.forward = 1 : i64, train.stage = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %w {train.forward = 2 : i64, train.stage = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %d = train.matmul %c, %w {train.forward = 3 : i64, train.stage = 3 : i64, train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 200>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %loss = train.mse %d, %target {train.forward = 4 : i64, train.stage = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %dd = train.loss_backward mse %d, %target {train.backward = 4 : i64, train.stage = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dc = train.matmul %dd, %c {train.backward = 3 : i64, train.stage = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %db = train.matmul %dc, %b {train.backward = 2 : i64, train.stage = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %da = train.matmul %db, %a {train.backward = 1 : i64, train.stage = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %dw = train.matmul %da, %x {train.backward = 0 : i64, train.stage = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64, train.stage = 0 : i64} : tensor<8x8xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}
