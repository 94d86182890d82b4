// RUN: sluice-opt %s --sluice-build-backward --split-input-file | FileCheck %s
// With train.precision = "fp16" gradients begin as the loss's scale. The check of all of them comes before what divides them by it again: the norm
// of all, and the updates, which wait as they do for a norm.

module attributes {train.optimizer = "sgd", train.precision = "fp16", train.clip_norm} {
  train.variable @a role(parameter) init(zero) : tensor<8x8xf32>
  train.variable @b role(parameter) init(zero) : tensor<4x8xf32>
  // CHECK-DAG: train.variable @"train/loss_scale" role(optimizer) init(zero) : tensor<f32>
  // CHECK-DAG: train.variable @"train/good_steps" role(optimizer) init(zero) : tensor<f32>
  // CHECK-DAG: train.variable @"train/skipped_steps" role(optimizer) init(zero) : tensor<f32>

  // CHECK-LABEL: func.func @step({{.*}}) -> (tensor<f32>, tensor<f32>)
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %a = train.read @a : tensor<8x8xf32>
    %b = train.read @b : tensor<4x8xf32>
    %h = train.matmul %x, %a {transpose_b = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %l = train.matmul %h, %b {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    // CHECK: train.softmax_cross_entropy
    // CHECK-NEXT: [[SCALE:%.*]] = train.read @"train/loss_scale" : tensor<f32>
    // CHECK-NEXT: [[DL:%.*]] = train.loss_backward
    // CHECK-NEXT: [[SCALED:%.*]] = train.mul [[DL]], [[SCALE]]
    // CHECK-NEXT: [[B:%.*]] = train.matmul [[SCALED]]
    // CHECK-NOT: train.update
    // CHECK: [[A:%.*]] = train.matmul {{.*}} -> tensor<8x8xf32>
    // CHECK-NEXT: [[GOOD:%.*]] = train.read @"train/good_steps"
    // CHECK-NEXT: [[SKIPPED:%.*]] = train.read @"train/skipped_steps"
    // CHECK-NEXT: train.check_gradients [[B]], [[A]] of [[SCALE]], [[GOOD]], [[SKIPPED]] {train.backward = 0 : i64}
    // CHECK-NEXT: [[ONE:%.*]] = train.gradient_norm [[B]]
    // CHECK-NEXT: [[ALL:%.*]] = train.gradient_norm [[A]] behind [[ONE]]
    // CHECK: train.update([[B]], {{.*}}) norm([[ALL]])
    // CHECK: train.update([[A]], {{.*}}) norm([[ALL]])
    // CHECK-NEXT: return {{.*}}, [[ALL]]
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A graph that ends in its own loss, sums over batches, no norm.
module attributes {train.optimizer = "sgd", train.precision = "fp16", train.accumulate} {
  train.variable @a role(parameter) init(zero) : tensor<8xf32>
  // CHECK-LABEL: func.func @step({{.*}}) -> tensor<f32>
  func.func @step(%x: tensor<2x8xf32>) -> tensor<f32> {
    %a = train.read @a : tensor<8xf32>
    %y = train.mul %x, %a : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    // CHECK: train.sum_to
    // CHECK-NEXT: [[SCALE:%.*]] = train.read @"train/loss_scale" : tensor<f32>
    // CHECK-NEXT: train.broadcast_to [[SCALE]]
    // CHECK: [[SUM:%.*]] = train.accumulate
    // CHECK: train.check_gradients [[SUM]] of [[SCALE]],
    // CHECK: train.update([[SUM]], {{.*}}) rule
    %loss = train.sum_to %y {factor = 1.0 : f32} : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
