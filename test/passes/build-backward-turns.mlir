// RUN: sluice-opt %s --sluice-build-backward | FileCheck %s --check-prefix=BACKWARD
// RUN: sluice-opt %s --sluice-pipeline="until=placed device=host budget=100%%" | FileCheck %s --check-prefix=PLACED
// RUN: not sluice-opt %s --sluice-pipeline="until=placed device=host budget=1024" 2>&1 | FileCheck %s --check-prefix=SMALL
// A step for each of two turns, which train parameters of their own by losses of their own. What one trains the other reads, without a gradient and without the states of its update; all of it
// has one place in both programs, and no transient of either lies there.

// BACKWARD-DAG: train.variable @g role(parameter)
// BACKWARD-DAG: train.variable @"g/exp_avg" role(optimizer)
// BACKWARD-DAG: train.variable @"d/exp_avg" role(optimizer)
// BACKWARD-LABEL: func.func @step.d(
// BACKWARD-NOT: @"g/exp_avg"
// BACKWARD: train.read @"d/exp_avg"
// BACKWARD-NOT: @"g/exp_avg"
// BACKWARD-LABEL: func.func @evaluate.d(
// The generator's: the gradient passes the product with @d and makes none of @d.
// BACKWARD-LABEL: func.func @step(
// BACKWARD-NOT: @"d/exp_avg"
// BACKWARD: train.read @"g/exp_avg"
// BACKWARD-NOT: @"d/exp_avg"
// BACKWARD-LABEL: func.func @evaluate(

// PLACED: sched.program @step.d device([[DEVICE:[0-9]+]]) host([[HOST:[0-9]+]]) base([[BASE:[0-9]+]])
// PLACED: sched.buffer "d" device bytes(1024) variable(@d) at([[D:[0-9]+]])
// PLACED: sched.program @step device([[DEVICE]]) host([[HOST]]) base([[BASE]])
// PLACED: sched.buffer "d" device bytes(1024) variable(@d) at([[D]])

// SMALL: a budget of 1024 bytes is too small for strategy 'auto' of turn '{{[dg]}}'
module attributes {train.optimizer = "adam", train.turns = [
    {name = "d", step = @step.d, evaluate = @evaluate.d, steps = 2 : i64, trains = [@d], attributes = {}},
    {name = "g", step = @step, evaluate = @evaluate, steps = 1 : i64, trains = [@g], attributes = {}}]} {
  train.variable @g role(parameter) init(kaiming) : tensor<16x16xf32> {fan_in = 16, fan_out = 16}
  train.variable @d role(parameter) init(kaiming) : tensor<16x16xf32> {fan_in = 16, fan_out = 16}
  func.func @step.d(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %g = train.read @g : tensor<16x16xf32>
    %d = train.read @d : tensor<16x16xf32>
    %y = train.matmul %x, %g : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = train.matmul %y, %d : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %z, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @evaluate.d(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %g = train.read @g : tensor<16x16xf32>
    %d = train.read @d : tensor<16x16xf32>
    %y = train.matmul %x, %g : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = train.matmul %y, %d : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %z, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @step(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %g = train.read @g : tensor<16x16xf32>
    %d = train.read @d : tensor<16x16xf32>
    %y = train.matmul %x, %g : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = train.matmul %y, %d : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %z, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  func.func @evaluate(%x: tensor<8x16xf32> {train.name = "x"}, %target: tensor<8xi64> {train.name = "target"}) -> tensor<f32> {
    %g = train.read @g : tensor<16x16xf32>
    %d = train.read @d : tensor<16x16xf32>
    %y = train.matmul %x, %g : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = train.matmul %y, %d : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = train.softmax_cross_entropy %z, %target : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
