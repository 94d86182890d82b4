// RUN: sluice-opt --sluice-schedule-streams %s | FileCheck %s
// One offloaded activation: two kernels that it hides behind, one between await and prefetch, one reader. The smallest program in which
// every kind of wait occurs once.

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>

// CHECK-LABEL: sched.program @step computes(@step.planned) {
// CHECK: %[[X:.*]] = sched.buffer "x" device bytes(256) input("x") batch(0)
// CHECK: %[[NEXT:.*]] = sched.buffer "x_next" device bytes(256) input("x") batch(1)
// CHECK: %[[STAGING:.*]] = sched.buffer "x_staging" host bytes(256) input("x")
// CHECK: %[[W:.*]] = sched.buffer "w" device bytes(256) variable(@w)
// CHECK: %[[A:.*]] = sched.buffer "fc1_y" device bytes(256)
// CHECK: %[[HOST:.*]] = sched.buffer "fc1_y_host" host bytes(256)
// CHECK: %[[B:.*]] = sched.buffer "fc2_y" device bytes(256)
// CHECK: %[[LOSS:.*]] = sched.buffer "loss_value" device bytes(4) result(0)
// CHECK: %[[BACK:.*]] = sched.buffer "fc1_y_back" device bytes(256)
// CHECK: %[[SCRATCH:.*]] = sched.buffer "fc2_y_scratch" device bytes(512)

// CHECK: sched.run compute "matmul" ins(%[[X]] : tensor<8x8xf32>, %[[W]] : tensor<8x8xf32>) outs(%[[A]] : tensor<8x8xf32>)
// CHECK-NEXT: %[[READY:.*]] = sched.record compute "fc1_y_ready"
// CHECK-NEXT: sched.wait d2h %[[READY]]
// CHECK-NEXT: sched.copy d2h %[[A]] -> %[[HOST]]
// CHECK-NEXT: %[[OUT:.*]] = sched.record d2h
// CHECK-NEXT: sched.run compute "matmul" ins(%[[A]] : {{.*}}) outs(%[[B]] : {{.*}}) scratch(%[[SCRATCH]])
// CHECK-NEXT: sched.wait compute %[[OUT]]
// CHECK-NEXT: sched.run compute "mse" {{.*}} outs(%[[LOSS]] : tensor<f32>) {{.*}} role(loss)
// CHECK-NEXT: sched.run compute "loss_backward"
// h2d need not wait for the copy out: compute did, before this record.
// CHECK-NEXT: %[[FREE:.*]] = sched.record compute "fc1_y_back_free"
// CHECK-NEXT: sched.wait h2d %[[FREE]]
// CHECK-NEXT: sched.copy h2d %[[HOST]] -> %[[BACK]]
// CHECK-NEXT: %[[IN:.*]] = sched.record h2d
// CHECK-NEXT: sched.run compute "fused"
// CHECK-NEXT: ^bb0
// CHECK: sched.wait compute %[[IN]]
// CHECK-NEXT: sched.run compute "matmul" ins({{.*}}, %[[BACK]] : tensor<8x8xf32>)
// CHECK-NEXT: sched.run compute "update" ins({{.*}}, %[[W]] : {{.*}}, %{{.*}} : {{.*}}) outs(%[[W]] : {{.*}}, %{{.*}} : {{.*}}) {{.*}} role(update) attributes {gathers
// The next batch comes behind the prefetch, whose wait already orders h2d after the step before.
// CHECK-NEXT: sched.copy h2d %[[STAGING]] -> %[[NEXT]]
// CHECK-NEXT: sched.copy h2d %target_staging -> %target_next
// CHECK-NEXT: %[[ARRIVED:.*]] = sched.record h2d
// CHECK-NEXT: sched.wait compute %[[ARRIVED]]
// CHECK-NEXT: }
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %h = train.offload %a : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  %b = train.matmul %a, %w {train.cost = #train.cost<seconds = 1.0e-3 : f64, workspace = 512>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  train.await %h : (!train.host<tensor<8x8xf32>>) -> ()
  %loss = train.mse %b, %target : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %db = train.loss_backward mse %b, %target : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %a2 = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<8x8xf32>
  %dc = train.fused (%db : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.in_place = array<i64: 0>} {
  ^bb0(%s: f32):
    %0 = arith.addf %s, %s : f32
    train.yield %0 : f32
  } loc("/scale/Mul")
  %dw = train.matmul %dc, %a2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) : tensor<8x8xf32> loc("/fc2/Gemm")
  return %loss : tensor<f32>
}
