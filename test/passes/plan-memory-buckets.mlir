// RUN: sluice-opt %s --sluice-build-backward | FileCheck %s --check-prefix=BACKWARD
// RUN: sluice-opt %s --sluice-pipeline="until=placed device=host budget=100%%" | FileCheck %s --check-prefix=PLACED
// RUN: not sluice-opt %s --sluice-pipeline="until=placed device=host budget=4096" 2>&1 | FileCheck %s --check-prefix=SMALL
// A step and an evaluation for each of two shapes: they have variables, states and slots of the batch in common, those as large as the larger shape needs.

// What belongs to a parameter is made once.
// BACKWARD: train.variable @w role(parameter)
// BACKWARD: train.variable @"w/momentum" role(optimizer)
// BACKWARD-NOT: momentum{{.*}} role(optimizer)
// BACKWARD-LABEL: func.func @step(
// BACKWARD: train.read @"w/momentum"
// BACKWARD: train.update
// BACKWARD-LABEL: func.func @step.4(
// BACKWARD: train.read @"w/momentum"
// BACKWARD: train.update

// Two slots each of 8 x 16 floats, whichever shape reads them; all programs have the arenas of the larger one.
// PLACED: sched.program @step device([[DEVICE:[0-9]+]]) host([[HOST:[0-9]+]]) base([[BASE:[0-9]+]])
// PLACED: sched.buffer "x_next" device bytes(512) input("x") batch(1) at([[NEXT:[0-9]+]])
// PLACED: sched.buffer "w" device bytes(1024) variable(@w) at([[W:[0-9]+]])
// PLACED: sched.program @step.4 device([[DEVICE]]) host([[HOST]]) base([[BASE]])
// PLACED: sched.buffer "x_next" device bytes(256) input("x") batch(1) at([[NEXT]])
// PLACED: sched.buffer "w" device bytes(1024) variable(@w) at([[W]])

// SMALL: a budget of 4096 bytes is too small for strategy 'auto' of bucket 'rows=8'
module attributes {train.optimizer = "sgd", train.buckets = [["rows=4", @step.4, @evaluate.4], ["rows=8", @step, @evaluate]]} {
  train.variable @w role(parameter) init(kaiming) : tensor<16x16xf32> {fan_in = 16, fan_out = 16}
  func.func @step(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<16x16xf32>
    %y = train.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @evaluate(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<16x16xf32>
    %y = train.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @step.4(%x: tensor<4x16xf32> {train.name = "x"}, %target: tensor<4xi64> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<16x16xf32>
    %y = train.matmul %x, %w : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<4x16xf32>, tensor<4xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @evaluate.4(%x: tensor<4x16xf32> {train.name = "x"}, %target: tensor<4xi64> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<16x16xf32>
    %y = train.matmul %x, %w : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<4x16xf32>, tensor<4xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
