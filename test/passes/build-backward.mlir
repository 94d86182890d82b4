// RUN: sluice-opt %s --sluice-build-backward | FileCheck %s
// The sketch of a small CNN: every gradient op names its kernel and lists what it reads; updates follow their gradient as soon as no later
// op reads the parameter (the data gradient of a convolution reads the weights before they change).

module attributes {train.optimizer = "sgd"} {
  train.variable @conv.weight role(parameter) init(kaiming) : tensor<4x3x3x3xf32>
  train.variable @bn.scale role(parameter) init(one) : tensor<4xf32>
  train.variable @bn.bias role(parameter) init(zero) : tensor<4xf32>
  train.variable @bn.mean role(state) init(zero) : tensor<4xf32>
  train.variable @bn.var role(state) init(one) : tensor<4xf32>
  train.variable @conv2.weight role(parameter) init(kaiming) : tensor<4x4x1x1xf32>
  train.variable @fc.weight role(parameter) init(kaiming) : tensor<10x64xf32>

  // CHECK: train.variable @conv.weight
  // CHECK-NEXT: train.variable @"conv.weight/momentum" role(optimizer) init(zero) : tensor<4x3x3x3xf32>
  // CHECK-LABEL: func.func @step
  func.func @step(%images: tensor<8x3x8x8xf32>, %target: tensor<8xi64>) -> tensor<f32> {
    %w = train.read @conv.weight : tensor<4x3x3x3xf32>
    %s = train.read @bn.scale : tensor<4xf32>
    %b = train.read @bn.bias : tensor<4xf32>
    %w2 = train.read @conv2.weight : tensor<4x4x1x1xf32>
    %fc = train.read @fc.weight : tensor<10x64xf32>
    // CHECK: train.conv {{.*}}train.forward = 0
    %y = train.conv %images, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<8x4x8x8xf32>
    // CHECK: {{.*}} = train.batch_norm {{.*}}train.forward = 1
    %n, %mean, %rstd = train.batch_norm %y, %s, %b {epsilon = 1.0e-5 : f32} : (tensor<8x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>)
    %old1_0 = train.read @bn.mean : tensor<4xf32>
    %old1_1 = train.read @bn.var : tensor<4xf32>
    %new1:2 = train.update_statistics %mean, %rstd, %old1_0, %old1_1 {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 512 : i64} : tensor<4xf32>
    %a = train.relu %n : (tensor<8x4x8x8xf32>) -> tensor<8x4x8x8xf32>
    %c = train.conv %a, %w2 {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<8x4x8x8xf32>
    %r = train.add %a, %c : (tensor<8x4x8x8xf32>, tensor<8x4x8x8xf32>) -> tensor<8x4x8x8xf32>
    %p, %where = train.max_pool %r {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, ceil_mode = false} : (tensor<8x4x8x8xf32>) -> (tensor<8x4x4x4xf32>, tensor<8x4x4x4xi8>)
    %f = train.reshape %p : (tensor<8x4x4x4xf32>) -> tensor<8x64xf32>
    %l = train.matmul %f, %fc {transpose_b = true} : (tensor<8x64xf32>, tensor<10x64xf32>) -> tensor<8x10xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<8x10xf32>, tensor<8xi64>) -> tensor<f32>
    // CHECK: train.softmax_cross_entropy
    // CHECK-NEXT: [[DL:%.*]] = train.loss_backward
    // CHECK-NEXT: [[DFC:%.*]] = train.matmul [[DL]], {{.*}}transpose_a = true
    // CHECK-NEXT: {{.*}} = train.matmul [[DL]], {{.*}}tensor<10x64xf32>) -> tensor<8x64xf32>
    // CHECK-NEXT: [[M:%.*]] = train.read @"fc.weight/momentum"
    // CHECK-NEXT: [[FC:%.*]] = train.read @fc.weight
    // CHECK-NEXT: train.update([[DFC]], [[FC]], [[M]]) rule(sgd)
    // CHECK: train.max_pool_backward
    // CHECK: [[DW2:%.*]] = train.conv_backward_weight
    // CHECK-NEXT: [[DA:%.*]] = train.conv_backward_data
    // CHECK-NEXT: {{.*}} = train.add {{.*}}, [[DA]]
    // CHECK: [[W2:%.*]] = train.read @conv2.weight
    // CHECK-NEXT: train.update([[DW2]], [[W2]],
    // CHECK-NEXT: {{.*}} = train.relu_backward
    // CHECK-NEXT: {{.*}} = train.batch_norm_backward
    // CHECK: train.read @bn.
    // CHECK-NEXT: train.update(
    // CHECK: train.conv_backward_weight
    // The images need no gradient.
    // CHECK-NOT: train.conv_backward_data
    // CHECK: return
    return %loss : tensor<f32>
  }
}
