// RUN: sluice-opt --sluice-apply-plan --split-input-file %s | FileCheck %s
// RUN: sluice-opt --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule --split-input-file %s | FileCheck %s --check-prefix=SCHED
// The input %x of a normalization with a leaky ReLU is rebuilt from its output %z, which goes to the host and back meanwhile: guarded channels
// are saved once the forward half has read %x, the rest is rebuilt behind the prefetch, before the first gradient that reads %x.

train.variable @w role(parameter) init(kaiming) : tensor<8x32xf32>
train.variable @scale role(parameter) init(one) : tensor<32xf32>
train.variable @bias role(parameter) init(zero) : tensor<32xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x32xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[X:.*]] = train.matmul
// CHECK-NEXT: %[[MEAN:.*]], %[[RSTD:.*]] = train.batch_norm_statistics %[[X]]
// CHECK: %[[Z:.*]] = train.fused(%[[X]]
// CHECK: %[[ASIDE:.*]] = train.save_guarded_channels %[[X]], %[[SCALE:.*]], %[[BIAS:.*]] : (tensor<8x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x8xf32>
// CHECK: %[[H:.*]] = train.offload %[[Z]]
// CHECK-NOT: train.await %[[ASIDE]]
// CHECK: train.loss_backward
// CHECK: %[[Z2:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[X2:.*]] = train.invert_batch_norm_leaky_relu %[[Z2]], %[[MEAN]], %[[RSTD]], %[[SCALE]], %[[BIAS]], %[[ASIDE]] {alpha = 1.000000e-01 : f32}
// CHECK-NEXT: train.fused(%{{.*}}, %[[Z2]], %[[X2]]

// SCHED-LABEL: sched.program @step
// SCHED-DAG: sched.buffer "bn_guarded" device bytes(64)
// SCHED-DAG: sched.buffer "bn_inverted" device bytes(1024)
// SCHED: %[[BACK:.*]] = sched.record h2d "bn_y_back_copied"
// SCHED: sched.wait compute %[[BACK]]
// SCHED-NEXT: sched.run compute "invert_batch_norm_leaky_relu" ins(%bn_y_back
func.func @step(%in: tensor<8x8xf32> {train.name = "in"}, %target: tensor<8x32xf32> {train.name = "target"}) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [
      <storage = "fc_y", action = invert absences [<leave_after = 2, free_before = 3, return_after = 4, needed_by = 5>]>,
      <storage = "bn_y", action = offload absences [<leave_after = 3, free_before = 4, return_after = 4, needed_by = 5>]>]>} {
  %w = train.read @w : tensor<8x32xf32>
  %x = train.matmul %in, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("/fc/Gemm")
  %mean, %rstd = train.batch_norm_statistics %x {epsilon = 1.0e-5 : f32, train.forward = 1 : i64} : (tensor<8x32xf32>) -> (tensor<32xf32>, tensor<32xf32>) loc("/bn/BN")
  %scale = train.read @scale : tensor<32xf32>
  %bias = train.read @bias : tensor<32xf32>
  %z = train.fused (%x, %mean, %rstd, %scale, %bias : tensor<8x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
      channels [1, 2, 3, 4] sums 0 -> (tensor<8x32xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%s: f32, %m: f32, %r: f32, %g: f32, %b: f32):
    %c = arith.subf %s, %m : f32
    %n = arith.mulf %c, %r : f32
    %v = arith.mulf %n, %g : f32
    %u = arith.addf %v, %b : f32
    %zero = arith.constant 0.0 : f32
    %alpha = arith.constant 0.1 : f32
    %p = arith.cmpf ogt, %u, %zero : f32
    %l = arith.mulf %u, %alpha : f32
    %y = arith.select %p, %u, %l : f32
    train.yield %y : f32
  } loc("/bn/BN")
  %loss = train.mse %z, %target {train.forward = 2 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<f32> loc("loss")
  %dz = train.loss_backward mse %target, %target {train.backward = 2 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("loss")
  %dx = train.fused (%dz, %z, %x : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) channels [] sums 0 -> (tensor<8x32xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32, %r: f32):
    %v = arith.mulf %s, %t : f32
    %q = arith.mulf %v, %r : f32
    train.yield %q : f32
  } loc("/bn/BN")
  %dw = train.matmul %in, %dx {transpose_a = true, train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x32xf32>) -> tensor<8x32xf32> loc("/fc/Gemm")
  %old1 = train.read @w : tensor<8x32xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x32xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x32xf32> loc("/fc/Gemm")
  return %loss : tensor<f32>
}
