// RUN: sluice-opt --sluice-build-decode --split-input-file --verify-diagnostics %s
// What mixes tokens otherwise than causal attention does is named in a remark, and there is no decode step.

module attributes {train.outputs = [#train.output<name = "scores", kept = 0>]} {
  train.variable @words role(parameter) init(zero) : tensor<29x8xf32>
  func.func @evaluate(%ids: tensor<2x4xi64> {train.name = "ids"}) -> (tensor<f32>, tensor<2x4x8xf32>) {
    %words = train.read @words : tensor<29x8xf32>
    %x = train.embedding %words, %ids : (tensor<29x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    // expected-remark @below {{no decode step: 'sum_to' of node '' is read for all tokens at once; --generate computes the whole text for each token}}
    %mean = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<2x4x8xf32>) -> tensor<2x1x8xf32>
    %y = train.add %x, %mean : (tensor<2x4x8xf32>, tensor<2x1x8xf32>) -> tensor<2x4x8xf32>
    %loss = train.sum_to %y : (tensor<2x4x8xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<2x4x8xf32>
  }
}

// -----

module attributes {train.outputs = [#train.output<name = "scores", kept = 0>]} {
  train.variable @words role(parameter) init(zero) : tensor<29x8xf32>
  func.func @evaluate(%ids: tensor<2x4xi64> {train.name = "ids"}) -> (tensor<f32>, tensor<2x4x8xf32>) {
    %words = train.read @words : tensor<29x8xf32>
    %x = train.embedding %words, %ids : (tensor<29x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    // expected-remark @below {{no decode step: 'softmax' of node '' mixes tokens}}
    %y = train.softmax %x {axis = 1 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %loss = train.sum_to %y : (tensor<2x4x8xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<2x4x8xf32>
  }
}

// -----

module attributes {train.outputs = [#train.output<name = "scores", kept = 0>]} {
  train.variable @words role(parameter) init(zero) : tensor<29x8xf32>
  func.func @evaluate(%ids: tensor<2x4xi64> {train.name = "ids"}) -> (tensor<f32>, tensor<2x4x8xf32>) {
    %words = train.read @words : tensor<29x8xf32>
    %x = train.embedding %words, %ids : (tensor<29x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %h = train.reshape %x : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
    // expected-remark @below {{no decode step: 'attention' of node '' lets tokens see those after them}}
    %a, %sums = train.attention %h, %h, %h {scale = 1.0 : f32} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
    %y = train.reshape %a : (tensor<2x1x4x8xf32>) -> tensor<2x4x8xf32>
    %loss = train.sum_to %y : (tensor<2x4x8xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<2x4x8xf32>
  }
}

// -----

// Words of a text that are seen by the product of all of them, as by attention that recompose did not find.
module attributes {train.outputs = [#train.output<name = "scores", kept = 0>]} {
  train.variable @words role(parameter) init(zero) : tensor<29x4xf32>
  func.func @evaluate(%ids: tensor<2x4xi64> {train.name = "ids"}) -> (tensor<f32>, tensor<2x4x4xf32>) {
    %words = train.read @words : tensor<29x4xf32>
    %x = train.embedding %words, %ids : (tensor<29x4xf32>, tensor<2x4xi64>) -> tensor<2x4x4xf32>
    // expected-remark @below {{no decode step: 'matmul' of node '' mixes tokens}}
    %y = train.matmul %x, %x : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %loss = train.sum_to %y : (tensor<2x4x4xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<2x4x4xf32>
  }
}

// -----

// expected-remark @below {{no decode step: the model has no scores [texts, tokens, words]}}
module {
  func.func @evaluate(%x: tensor<2x4xf32> {train.name = "x"}) -> tensor<f32> {
    %loss = train.sum_to %x : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
