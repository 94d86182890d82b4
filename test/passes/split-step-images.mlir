// RUN: sluice-opt %s --sluice-build-backward "--sluice-split-step=along=image parts=2" | FileCheck %s
// RUN: sluice-opt %s --sluice-build-backward "--sluice-split-step=along=image parts=2 above=8000" | FileCheck %s --check-prefix=LARGE
// Sixteen rows in two parts. The first part of a 3x3 convolution ends a row before what it reads, the second reads two rows of the first again and has no padding above. The pool has whole windows alone. In the backward half
// borders move up once more: the gradient of seven rows is complete for six of x.

module attributes {train.loss_inputs = ["target"]} {
train.variable @w role(parameter) init(zero) : tensor<4x3x3x3xf32>
train.variable @u role(parameter) init(zero) : tensor<4x4x3x3xf32>

// CHECK: train.parts = "images in 2 parts"
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<2x3x16x8xf32>, %[[T:[a-z0-9]*]]: tensor<2x4x8x4xf32>
// LARGE-LABEL: func.func @step
func.func @step(%x: tensor<2x3x16x8xf32>, %target: tensor<2x4x8x4xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4x3x3x3xf32>
  %u = train.read @u : tensor<4x4x3x3xf32>
  // CHECK: %[[X1:.*]] = train.slice %[[X]] {axis = 2 : i64, length = 9 : i64, start = 0 : i64, train.forward = 0 : i64}
  // CHECK: %[[Y1:.*]] = train.conv %[[X1]], %[[W:[0-9]+]] {{.*}}pads = array<i64: 1, 1, 0, 1>{{.*}} -> tensor<2x4x8x8xf32>
  // CHECK-NEXT: %[[R1:.*]] = train.relu %[[Y1]]
  // CHECK: %[[Z1:.*]] = train.conv %[[R1]], %[[U:[0-9]+]] {{.*}}pads = array<i64: 1, 1, 0, 1>{{.*}} -> tensor<2x4x7x8xf32>
  // CHECK-NEXT: %[[Q1:.*]] = train.slice %[[Z1]] {axis = 2 : i64, length = 6 : i64, start = 0 : i64
  // CHECK-NEXT: %[[P1:.*]], %[[I1:.*]] = train.max_pool %[[Q1]] {{.*}} -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xi8>)
  // CHECK-NEXT: %[[X2:.*]] = train.slice %[[X]] {axis = 2 : i64, length = 9 : i64, start = 7 : i64
  // CHECK-NEXT: %[[Y2:.*]] = train.conv %[[X2]], %[[W]] {{.*}}pads = array<i64: 0, 1, 1, 1>{{.*}} -> tensor<2x4x8x8xf32>
  // CHECK-NEXT: %[[R2:.*]] = train.relu %[[Y2]]
  // CHECK-NEXT: %[[H:.*]] = train.slice %[[R1]] {axis = 2 : i64, length = 2 : i64, start = 6 : i64
  // CHECK-NEXT: %[[J:.*]] = train.concat %[[H]], %[[R2]] {axis = 2 : i64
  // CHECK-NEXT: %[[Z2:.*]] = train.conv %[[J]], %[[U]] {{.*}}pads = array<i64: 0, 1, 1, 1>{{.*}} -> tensor<2x4x9x8xf32>
  // CHECK: train.max_pool {{.*}} -> (tensor<2x4x5x4xf32>, tensor<2x4x5x4xi8>)
  // LARGE: train.conv {{.*}} -> tensor<2x4x16x8xf32>
  // LARGE-NEXT: train.slice
  // LARGE-NEXT: train.relu
  // LARGE: train.conv {{.*}} -> tensor<2x4x7x8xf32>
  // LARGE: train.concat {{.*}} -> tensor<2x4x16x8xf32>
  // LARGE-NEXT: train.max_pool {{.*}} : (tensor<2x4x16x8xf32>)
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x16x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x16x8xf32>
  %r = train.relu %y : (tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %z = train.conv %r, %u {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x4x16x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x16x8xf32>
  %p, %indices = train.max_pool %z {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x4x16x8xf32>) -> (tensor<2x4x8x4xf32>, tensor<2x4x8x4xi8>)
  // The loss is of all rows.
  // CHECK: %[[P:.*]] = train.concat {{.*}} -> tensor<2x4x8x4xf32>
  // CHECK: %[[D:.*]] = train.loss_backward
  // CHECK-NEXT: %[[D1:.*]] = train.slice %[[D]] {axis = 2 : i64, length = 3 : i64, start = 0 : i64
  // CHECK-NEXT: %[[E1:.*]] = train.max_pool_backward %[[D1]], %[[I1]] {{.*}} -> tensor<2x4x6x8xf32>
  // CHECK-NEXT: %[[S1:.*]] = train.slice %[[R1]] {axis = 2 : i64, length = 7 : i64, start = 0 : i64
  // CHECK-NEXT: train.conv_backward_weight %[[E1]], %[[S1]] {{.*}}pads = array<i64: 1, 1, 0, 1>
  // CHECK-NEXT: train.conv_backward_data %[[E1]], %[[U]] {{.*}}pads = array<i64: 1, 1, 2, 1>{{.*}} -> tensor<2x4x5x8xf32>
  // CHECK: train.conv_backward_data {{.*}}pads = array<i64: 2, 1, 1, 1>{{.*}} : (tensor<2x4x12x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x11x8xf32>
  %loss = train.mse %p, %target : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
