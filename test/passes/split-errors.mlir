// RUN: sluice-opt --sluice-build-backward --sluice-split=parts=4 --split-input-file --verify-diagnostics %s
// What cannot be computed in parts is refused with the reason, never trained otherwise.

train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
// expected-error @below {{cannot be computed in 4 parts: @step has no mean cross-entropy of scores without class weights}}
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12x100xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  %loss = train.mse %y, %t : (tensor<12x100xf32>, tensor<12x100xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<3x32xf32>, %t: tensor<3xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<3x32xf32>) -> tensor<3x32xf32>
  %y = train.matmul %h, %w : (tensor<3x32xf32>, tensor<32x100xf32>) -> tensor<3x100xf32>
  // expected-error @below {{cannot be computed in 4 parts: '': it has 3 rows}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<3x100xf32>, tensor<3xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(zero) : tensor<7x32x1x1xf32>
func.func @step(%x: tensor<4x32x8x8xf32>, %t: tensor<4x8x8xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<7x32x1x1xf32>
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
      : (tensor<4x32x8x8xf32>, tensor<7x32x1x1xf32>) -> tensor<4x7x8x8xf32>
  // expected-error @below {{'': its scores are 4x7x8x8, with classes that are not the last dimension}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<4x7x8x8xf32>, tensor<4x8x8xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(zero) : tensor<12x100xf32>
func.func @step(%t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<12x100xf32>
  %y = train.gelu %w : (tensor<12x100xf32>) -> tensor<12x100xf32>
  // expected-error @below {{'': no product with weights makes its scores}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sum over all rows between product and loss.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  %s = train.softmax %y {axis = 0 : i64} : (tensor<12x100xf32>) -> tensor<12x100xf32> loc("across")
  // expected-error @below {{'': its rows are not apart in 'softmax' of node 'across'}}
  %loss = train.softmax_cross_entropy %s, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Draws of rows would be others.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  %s = train.dropout %y {ratio = 0.5 : f32, key = 7 : i64} : (tensor<12x100xf32>) -> tensor<12x100xf32> loc("drop")
  // expected-error @below {{'': its rows are not apart in 'dropout' of node 'drop'}}
  %loss = train.softmax_cross_entropy %s, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A bias of the steps of a sequence is another one in each row.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
train.variable @b role(parameter) init(zero) : tensor<6x100xf32>
func.func @step(%x: tensor<2x6x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %b = train.read @b : tensor<6x100xf32>
  %h = train.gelu %x : (tensor<2x6x32xf32>) -> tensor<2x6x32xf32>
  %y = train.matmul %h, %w : (tensor<2x6x32xf32>, tensor<32x100xf32>) -> tensor<2x6x100xf32>
  %z = train.add %y, %b : (tensor<2x6x100xf32>, tensor<6x100xf32>) -> tensor<2x6x100xf32> loc("positions")
  %l = train.reshape %z : (tensor<2x6x100xf32>) -> tensor<12x100xf32>
  // expected-error @below {{'': its rows are not apart in 'add' of node 'positions'}}
  %loss = train.softmax_cross_entropy %l, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Something else is trained by the scores.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>, %numbers: tensor<12x100xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  // expected-error @below {{'': 'mse' of node 'square' reads its scores, too}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  %other = train.mse %y, %numbers : (tensor<12x100xf32>, tensor<12x100xf32>) -> tensor<f32> loc("square")
  %sum = train.add %loss, %other : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %y = train.matmul %x, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  // expected-error @below {{'': there is nothing before the product}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The loss weighs itself.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  // expected-error @below {{'': '' reads what comes after the loss}}
  %loss = train.softmax_cross_entropy %y, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  %square = train.mul %loss, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %square : tensor<f32>
}

// -----

train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
func.func @step(%x: tensor<12x32xf32>, %t: tensor<12xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %h = train.gelu %x : (tensor<12x32xf32>) -> tensor<12x32xf32>
  %y = train.matmul %h, %w : (tensor<12x32xf32>, tensor<32x100xf32>) -> tensor<12x100xf32>
  %loss = train.softmax_cross_entropy %y, %t : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @evaluate(%x: tensor<12x32xf32>) -> tensor<12x32xf32> {
  // expected-error @below {{is as sluice-fuse leaves it; run sluice-split before that}}
  %y = train.fused (%x : tensor<12x32xf32>) channels [] sums 0 -> (tensor<12x32xf32>) {
  ^bb0(%a: f32):
    train.yield %a : f32
  }
  return %y : tensor<12x32xf32>
}
