// RUN: sluice-opt %s --sluice-build-backward | FileCheck %s
// A join of all before gives what an earlier join has its gradient at once: one slab and one sum for %b, and no slab of %x and %f1 in it. Along another dimension,
// or of other first tensors, joins know nothing of each other.

module attributes {train.optimizer = "sgd"} {
  train.variable @w role(parameter) init(kaiming) : tensor<8x4xf32>

  // CHECK-LABEL: func.func @step
  func.func @step(%images: tensor<16x8xf32>, %f1: tensor<16x2xf32>, %f2: tensor<16x2xf32>, %target: tensor<16xi64>) -> tensor<f32> {
    %w = train.read @w : tensor<8x4xf32>
    %x = train.matmul %images, %w : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    %y = train.relu %x : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %other = train.concat %y, %x {axis = 1 : i64} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x8xf32>
    %b = train.concat %x, %y {axis = 1 : i64} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x8xf32>
    %s = train.mul %b, %other : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %z = train.relu %x : (tensor<16x4xf32>) -> tensor<16x4xf32>
    %c = train.concat %x, %y, %z {axis = 1 : i64} : (tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x12xf32>
    %d = train.concat %c, %s {axis = 1 : i64} : (tensor<16x12xf32>, tensor<16x8xf32>) -> tensor<16x20xf32>
    %loss = train.softmax_cross_entropy %d, %target : (tensor<16x20xf32>, tensor<16xi64>) -> tensor<f32>
    // CHECK: [[DD:%.*]] = train.loss_backward
    // CHECK-NEXT: [[DC:%.*]] = train.slice [[DD]] {axis = 1 : i64, length = 12 : i64, start = 0 : i64
    // CHECK-NEXT: [[DS:%.*]] = train.slice [[DD]] {axis = 1 : i64, length = 8 : i64, start = 12 : i64
    // CHECK-NEXT: [[DB1:%.*]] = train.slice [[DC]] {axis = 1 : i64, length = 8 : i64, start = 0 : i64
    // CHECK-NEXT: [[DZ:%.*]] = train.slice [[DC]] {axis = 1 : i64, length = 4 : i64, start = 8 : i64
    // CHECK-NEXT: [[DX1:%.*]] = train.relu_backward [[DZ]]
    // CHECK-NEXT: [[DB2:%.*]] = train.mul [[DS]]
    // CHECK-NEXT: [[DB:%.*]] = train.add [[DB1]], [[DB2]]
    // CHECK-NEXT: [[DO:%.*]] = train.mul
    // CHECK-NEXT: [[DX2:%.*]] = train.slice [[DB]] {axis = 1 : i64, length = 4 : i64, start = 0 : i64
    // CHECK-NEXT: train.add [[DX1]], [[DX2]]
    // CHECK-NEXT: train.slice [[DB]] {axis = 1 : i64, length = 4 : i64, start = 4 : i64
    // CHECK-NEXT: train.slice [[DO]] {axis = 1 : i64, length = 4 : i64, start = 0 : i64
    return %loss : tensor<f32>
  }
}
