// RUN: sluice-opt --sluice-apply-plan %s | FileCheck %s
// RUN: sluice-opt --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule %s | FileCheck %s --check-prefix=SCHED
// The addend %x of y = x + u w2 is rebuilt from y and from u, whose product runs again into memory of its own, because y works in the bytes of the
// first one; x takes its place. It stands before the update of w2, and what runs again for it is nobody else's.

train.variable @w0 role(parameter) init(kaiming) : tensor<8x32xf32>
train.variable @w1 role(parameter) init(kaiming) : tensor<8x16xf32>
train.variable @w2 role(parameter) init(kaiming) : tensor<16x32xf32>
train.variable @"w0/momentum" role(optimizer) init(zero) : tensor<8x32xf32>
train.variable @"w2/momentum" role(optimizer) init(zero) : tensor<16x32xf32>

// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[U:.*]] = train.matmul {{.*}}tensor<8x16xf32>
// CHECK-DAG: %[[W2:.*]] = train.read @w2
// CHECK: %[[Y:.*]] = train.fused
// CHECK: train.loss_backward
// CHECK-NEXT: %[[F:.*]] = train.matmul %[[U]], %[[W2]] {{.*}}train.inverse
// CHECK-NEXT: %[[X:.*]] = train.fused(%[[Y]], %[[F]] : {{.*}}) channels [] sums 0 -> {{.*}} attributes {train.in_place = array<i64: 1>, train.inverse, train.rule = "invert"}
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[A]], %[[B]]
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[D]], %[[HALF]]
// CHECK-NEXT: train.yield %[[Q]]
// CHECK: %{{.*}} = train.check_cancellation %[[X]], %[[Y]] : {{.*}} -> tensor<512x2xf32>
// CHECK-NEXT: train.matmul %[[U]]
// CHECK: train.update(
// CHECK-NEXT: train.fused(%{{.*}}, %[[X]]

// SCHED-LABEL: sched.program @step
// SCHED-DAG: sched.buffer "f_apart" device bytes(1024)
// SCHED: sched.run compute "loss_backward"
// SCHED-NEXT: sched.run compute "matmul" ins(%u_y : {{.*}}, %w2 : {{.*}}) outs(%f_apart
// SCHED-NEXT: sched.run compute "fused" ins(%f_y : {{.*}}, %f_apart : {{.*}}) outs(%f_apart
// SCHED: sched.run compute "check_cancellation" ins(%f_apart : {{.*}}, %f_y
func.func @step(%in: tensor<8x8xf32> {train.name = "in"}, %target: tensor<8x32xf32> {train.name = "target"}) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [
      <storage = "x_y", action = invert absences [<leave_after = 3, free_before = 4, return_after = 5, needed_by = 6>]>]>} {
  %w0 = train.read @w0 : tensor<8x32xf32>
  %x = train.matmul %in, %w0 {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("/x/Gemm")
  %w1 = train.read @w1 : tensor<8x16xf32>
  %u = train.matmul %in, %w1 {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc("/u/Gemm")
  %w2 = train.read @w2 : tensor<16x32xf32>
  %f = train.matmul %u, %w2 {train.forward = 2 : i64} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("/f/Gemm")
  %y = train.fused (%x, %f : tensor<8x32xf32>, tensor<8x32xf32>) channels [] sums 0 -> (tensor<8x32xf32>) attributes {train.forward = 3 : i64, train.in_place = array<i64: 1>, train.rule = "scale+add"} {
  ^bb0(%s: f32, %t: f32):
    %half = arith.constant 0.5 : f32
    %v = arith.mulf %s, %half : f32
    %q = arith.addf %v, %t : f32
    train.yield %q : f32
  } loc("/add/Add")
  %loss = train.mse %y, %target {train.forward = 4 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<f32> loc("loss")
  %dy = train.loss_backward mse %y, %target {train.backward = 4 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("loss")
  %dw2 = train.matmul %u, %dy {transpose_a = true, train.backward = 2 : i64} : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32> loc("/f/Gemm")
  %old1 = train.read @w2 : tensor<16x32xf32>
  %old1_0 = train.read @"w2/momentum" : tensor<16x32xf32>
  %new1:2 = train.update(%dw2, %old1, %old1_0) rule(sgd) {train.backward = 2 : i64} : tensor<16x32xf32> loc("/f/Gemm")
  %dx = train.fused (%dy, %x : tensor<8x32xf32>, tensor<8x32xf32>) channels [] sums 0 -> (tensor<8x32xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32):
    %v = arith.mulf %s, %t : f32
    train.yield %v : f32
  } loc("/x/Gemm")
  %dw0 = train.matmul %in, %dx {transpose_a = true, train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("/x/Gemm")
  %old2 = train.read @w0 : tensor<8x32xf32>
  %old2_0 = train.read @"w0/momentum" : tensor<8x32xf32>
  %new2:2 = train.update(%dw0, %old2, %old2_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x32xf32> loc("/x/Gemm")
  return %loss : tensor<f32>
}
