// RUN: sluice-opt %s --sluice-build-backward --split-input-file | FileCheck %s
// What a module asks of its updates: sums over the batches of a step, the norm of all gradients, which all updates wait for and the step
// returns, and averages, which other functions read.

// CHECK-LABEL: module attributes {train.accumulate, train.average, train.clip_norm
module attributes {train.optimizer = "lamb", train.clip_norm, train.accumulate, train.average} {
  train.variable @a role(parameter) init(kaiming) : tensor<8x8xf32> {fan_in = 8, fan_out = 8}
  train.variable @b role(parameter) init(kaiming) : tensor<4x8xf32> {fan_in = 8, fan_out = 4}
  // CHECK: train.variable @a role
  // CHECK-DAG: train.variable @"a/ema" role(optimizer) init(copy) : tensor<8x8xf32> {train.copy_of = @a}
  // CHECK-DAG: train.variable @"a/exp_avg" role(optimizer) init(zero)
  // CHECK-DAG: train.variable @"a/exp_avg_sq" role(optimizer) init(zero)
  // CHECK-DAG: train.variable @"a/gradient_sum" role(gradient) init(zero)

  // CHECK-LABEL: func.func @step({{.*}}) -> (tensor<f32>, tensor<f32>)
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %a = train.read @a : tensor<8x8xf32>
    %b = train.read @b : tensor<4x8xf32>
    %h = train.matmul %x, %a {transpose_b = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %l = train.matmul %h, %b {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    // CHECK: [[LOSS:%.*]] = train.softmax_cross_entropy
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK: [[SUM:%.*]] = train.read @"b/gradient_sum"
    // CHECK-NEXT: [[B:%.*]] = train.accumulate {{.*}}, [[SUM]]
    // CHECK-NEXT: [[ONE:%.*]] = train.gradient_norm [[B]] {train.backward = 1 : i64} : tensor<4x8xf32> -> tensor<f32>
    // CHECK-NOT: train.update
    // CHECK: [[SUM:%.*]] = train.read @"a/gradient_sum"
    // CHECK-NEXT: [[A:%.*]] = train.accumulate {{.*}}, [[SUM]]
    // CHECK-NEXT: [[ALL:%.*]] = train.gradient_norm [[A]] behind [[ONE]]
    // CHECK-NEXT: [[M:%.*]] = train.read @"b/exp_avg"
    // CHECK-NEXT: [[V:%.*]] = train.read @"b/exp_avg_sq"
    // CHECK-NEXT: [[E:%.*]] = train.read @"b/ema"
    // CHECK-NEXT: [[W:%.*]] = train.read @b
    // CHECK-NEXT: train.update([[B]], [[W]], [[M]], [[V]], [[E]]) norm([[ALL]]) rule(lamb) {averaged, train.backward = 0 : i64}
    // CHECK: train.update([[A]], {{.*}}) norm([[ALL]]) rule(lamb)
    // CHECK-NEXT: return [[LOSS]], [[ALL]]
    return %loss : tensor<f32>
  }

  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
    // CHECK: train.read @"a/ema"
    %a = train.read @a : tensor<8x8xf32>
    %h = train.matmul %x, %a {transpose_b = true} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    return %h : tensor<2x8xf32>
  }
}

// -----

// Without the norm, updates come as early as ever.
// CHECK-LABEL: module attributes {train.accumulate, train.optimizer = "lion"}
module attributes {train.optimizer = "lion", train.accumulate} {
  train.variable @a role(parameter) init(zero) : tensor<8x8xf32>
  train.variable @b role(parameter) init(zero) : tensor<8x8xf32>
  func.func @step(%x: tensor<2x8xf32>) -> tensor<f32> {
    %a = train.read @a : tensor<8x8xf32>
    %b = train.read @b : tensor<8x8xf32>
    %h = train.matmul %x, %a : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %y = train.matmul %h, %b : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    // CHECK: [[SUM:%.*]] = train.read @"b/gradient_sum"
    // CHECK-NEXT: [[B:%.*]] = train.accumulate {{.*}}, [[SUM]]
    // CHECK-NEXT: [[M:%.*]] = train.read @"b/exp_avg"
    // CHECK-NEXT: [[W:%.*]] = train.read @b
    // CHECK-NEXT: train.update([[B]], [[W]], [[M]]) rule(lion) {train.backward = 1 : i64}
    // CHECK-NEXT: train.matmul
    // CHECK: train.update(
    %loss = train.mse %y, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A parameter behind a comparison has no gradient, and says so; the other one has an update.
module attributes {train.optimizer = "sgd"} {
  // CHECK: train.variable @w role(parameter)
  // CHECK-NOT: train.unreached
  // CHECK: train.variable @threshold role(parameter) {{.*}}{train.unreached}
  train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
  train.variable @threshold role(parameter) init(zero) : tensor<8xf32>
  func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> {
    %w = train.read @w : tensor<8x8xf32>
    %t = train.read @threshold : tensor<8xf32>
    %h = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %mask = train.compare %h, %t {predicate = 1 : i32} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
    %y = train.mul %h, %mask : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %loss = train.mse %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
    // CHECK: train.update(
    // CHECK-NOT: train.update(
    return %loss : tensor<f32>
  }
}
