// RUN: sluice-opt %s --sluice-build-backward --sluice-split-step=parts=2 | FileCheck %s
// A weight whose gradient is larger than what it is made of: no part has a gradient of its own. Draws know where a part begins.
module attributes {train.loss_inputs = ["target"]} {
train.variable @v role(parameter) init(zero) : tensor<64x256xf32>
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x256xf32>, %target: tensor<4x64xf32>) -> tensor<f32> {
  // CHECK: train.dropout {{.*}}key = 3 : i64, ratio = 5.000000e-01 : f32, {{.*}} : (tensor<2x256xf32>)
  // CHECK: %[[L1:.*]] = train.mse
  // CHECK: %[[H1:.*]] = train.scale %[[L1]] {factor = 5.000000e-01 : f32
  // CHECK: %[[G1:.*]] = train.loss_backward mse
  // CHECK: %[[D1:.*]] = train.scale %[[G1]] {factor = 5.000000e-01 : f32
  // CHECK-NOT: transpose_a
  // CHECK: train.dropout {{.*}}first = 512 : i64, {{.*}} : (tensor<2x256xf32>)
  // CHECK: %[[D2:.*]] = train.scale {{.*}} : (tensor<2x64xf32>)
  // CHECK: %[[D:.*]] = train.concat %[[D1]], %[[D2]]
  // CHECK: train.matmul %[[D]], %{{.*}} {train.backward = {{.*}} transpose_a = true} : (tensor<4x64xf32>, tensor<4x256xf32>)
  %v = train.read @v : tensor<64x256xf32>
  %d = train.dropout %x {ratio = 5.0e-1 : f32, key = 3 : i64} : (tensor<4x256xf32>) -> tensor<4x256xf32>
  %y = train.matmul %d, %v {transpose_b = true} : (tensor<4x256xf32>, tensor<64x256xf32>) -> tensor<4x64xf32>
  %loss = train.mse %y, %target : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
