// RUN: sluice-opt --sluice-build-backward --split-input-file --verify-diagnostics %s

// expected-error @below {{knows no optimizer 'lbfgs'; there are sgd, adam, adamw, adagrad, rmsprop, lamb and lion}}
module attributes {train.optimizer = "lbfgs"} {
  func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> {
    %loss = train.mse %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Nothing that trains reaches the loss.
train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
// expected-error @below {{no trained parameter reaches the loss; --list-parameters shows what is trained}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<8x8xf32>
  %y = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %loss = train.mse %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor through what is detached.
module attributes {train.outputs = [#train.output<name = "y", loss = "mse">]} {
  train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
  // expected-error @below {{no gradient of the loss of output 'y' reaches a parameter: comparisons, rounding,}}
  func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> {
    %w = train.read @w : tensor<8x8xf32>
    %h = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %y = train.detach %h : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %loss = train.mse %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What lies between passes no gradient.
module attributes {train.outputs = [#train.output<name = "y", loss = "mse">]} {
  train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
  // expected-error @below {{no gradient of the loss of output 'y' reaches a parameter: comparisons, rounding,}}
  func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> {
    %w = train.read @w : tensor<8x8xf32>
    %h = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %y = train.compare %h, %x {predicate = 1 : i32} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %loss = train.mse %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
func.func @step(%x: tensor<8xi64>) -> tensor<i64> {
  %w = train.read @w : tensor<8x8xf32>
  // expected-error @below {{op 'train.count_correct' of node '' has no gradient rule, but a trained parameter lies before it}}
  %n = train.count_correct %w, %x : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<i64>
  return %n : tensor<i64>
}

// -----

// expected-error @below {{needs a function @step that returns the loss}}
module {
  func.func @evaluate(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    return %x : tensor<8x8xf32>
  }
}
