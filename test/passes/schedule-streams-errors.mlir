// RUN: sluice-opt --sluice-schedule-streams --split-input-file --verify-diagnostics %s
// A value is read after the bytes that hold it got another value: by an update, and by an op that works in place.

train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
train.variable @m role(optimizer) init(zero) : tensor<8x8xf32>
func.func @read_after_update(%x: tensor<8x8xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<8x8xf32>
  // expected-note @unknown {{overwritten by 'fc'}}
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @m : tensor<8x8xf32>
  %new1:2 = train.update(%x, %old1, %old1_0) rule(sgd) : tensor<8x8xf32> loc("fc")
  // expected-error @unknown {{'late' reads 'w' after its bytes were overwritten}}
  %y = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("late")
  %loss = train.mse %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @read_after_in_place(%x: tensor<8x8xf32>) -> tensor<f32> {
  %a = train.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("first")
  // expected-note @unknown {{overwritten by 'relu'}}
  %b = train.fused (%a : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.in_place = array<i64: 0>} {
  ^bb0(%s: f32):
    train.yield %s : f32
  } loc("relu")
  // expected-error @unknown {{'loss' reads 'first_y' after its bytes were overwritten}}
  %loss = train.mse %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
