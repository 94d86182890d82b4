// RUN: sluice-opt %s --sluice-join-losses | FileCheck %s
// A cross-entropy and its gradient become one op in the gradient's place, with the attributes of both; what stays two: losses that are read in between, and gradients
// of other losses.

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[T:.*]]: tensor<4xi64>
// CHECK-NEXT: %[[DX:.*]], %[[LOSS:.*]] = train.loss_and_gradient %[[X]], %[[T]] {classes = 5 : i64, ignore_index = -100 : i64, train.backward = 3 : i64}
// CHECK-NEXT: return %[[LOSS]], %[[DX]]
func.func @step(%x: tensor<4x8xf32>, %t: tensor<4xi64>) -> (tensor<f32>, tensor<4x8xbf16>) {
  %loss = train.softmax_cross_entropy %x, %t {classes = 5 : i64, ignore_index = -100 : i64, train.forward = 3 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  %dx = train.loss_backward softmax_cross_entropy %x, %t {classes = 5 : i64, ignore_index = -100 : i64, train.backward = 3 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xbf16>
  return %loss, %dx : tensor<f32>, tensor<4x8xbf16>
}

// CHECK-LABEL: func.func @read_before
// CHECK: train.softmax_cross_entropy
// CHECK: train.loss_backward
func.func @read_before(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %other: tensor<f32>) -> (tensor<f32>, tensor<4x8xf32>) {
  %loss = train.softmax_cross_entropy %x, %t : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  %sum = train.add %loss, %other : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = train.loss_backward softmax_cross_entropy %x, %t : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %sum, %dx : tensor<f32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @others
// CHECK: train.softmax_cross_entropy
// CHECK: train.loss_backward
// CHECK: train.loss_backward
// CHECK-NOT: train.loss_and_gradient
func.func @others(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %u: tensor<4xi64>) -> (tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %loss = train.softmax_cross_entropy %x, %t : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  %dx = train.loss_backward softmax_cross_entropy %x, %u : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %dz = train.loss_backward softmax_cross_entropy %x, %t {ignore_index = 3 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %loss, %dx, %dz : tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>
}
