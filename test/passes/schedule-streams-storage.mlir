// RUN: sluice-opt --sluice-schedule-streams %s -o %t && FileCheck %s --input-file=%t
// RUN: sluice-opt --sluice-assign-slots --sluice-verify-schedule %t | FileCheck %s --check-prefix=PLACED
// What is offloaded to storage leaves and returns on one stream, which needs no event between the two. The next batch comes on h2d as ever.

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>

// CHECK-DAG: %[[A:.*]] = sched.buffer "fc1_y" device bytes(256)
// CHECK-DAG: %[[FILE:.*]] = sched.buffer "fc1_y_storage" storage bytes(256)
// CHECK-DAG: %[[BACK:.*]] = sched.buffer "fc1_y_back" device bytes(256)
// CHECK: %[[READY:.*]] = sched.record compute "fc1_y_ready"
// CHECK-NEXT: sched.wait storage %[[READY]]
// CHECK-NEXT: sched.copy storage %[[A]] -> %[[FILE]] versions 1 -> 1
// CHECK-NEXT: %[[OUT:.*]] = sched.record storage
// CHECK: sched.wait compute %[[OUT]]
// CHECK: %[[FREE:.*]] = sched.record compute "fc1_y_back_free"
// CHECK-NEXT: sched.wait storage %[[FREE]]
// CHECK-NEXT: sched.copy storage %[[FILE]] -> %[[BACK]] versions 1 -> 1
// CHECK-NEXT: %[[IN:.*]] = sched.record storage
// CHECK: sched.wait compute %[[IN]]
// CHECK: sched.copy h2d %x_staging -> %x_next
// PLACED: sched.program @step device({{[0-9]+}}) host({{[0-9]+}}) storage(256) base({{[0-9]+}}) computes
// PLACED: sched.buffer "fc1_y_storage" storage bytes(256) at(0) live(
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %h = train.offload %a {home = "storage"} : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  %b = train.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  train.await %h : (!train.host<tensor<8x8xf32>>) -> ()
  %c = train.matmul %b, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %a2 = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<8x8xf32>
  %d = train.matmul %c, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %e = train.matmul %d, %a2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc5/Gemm")
  %loss = train.mse %e, %target : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
