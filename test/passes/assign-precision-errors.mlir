// RUN: sluice-opt --sluice-assign-precision --split-input-file --verify-diagnostics %s
// The pass refuses what is linearized; what it leaves is verified, see PrecisionAware and train.cast.

func.func @product_p1(%x: tensor<4x8xbf16>, %w: tensor<8x8xf32>) {
  // expected-error @below {{mixes element types: 'tensor<4x8xbf16>' and 'tensor<8x8xf32>' as operand 1}}
  %y = train.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @product_p1_result(%x: tensor<2x3x4x4xbf16, #train.layout<nhwc>>, %w: tensor<5x3x1x1xbf16>) {
  // expected-error @below {{mixes element types: 'tensor<2x3x4x4xbf16, #train.layout<nhwc>>' and 'tensor<2x5x4x4xf32, #train.layout<nhwc>>' as result 0}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xbf16, #train.layout<nhwc>>, tensor<5x3x1x1xbf16>) -> tensor<2x5x4x4xf32, #train.layout<nhwc>>
  return
}

// -----

func.func @same_p2(%a: tensor<4x8xbf16>, %b: tensor<4x8xf32>) {
  // expected-error @below {{mixes element types: 'tensor<4x8xbf16>' and 'tensor<4x8xf32>' as operand 1}}
  %y = train.concat %a, %b {axis = 1 : i64} : (tensor<4x8xbf16>, tensor<4x8xf32>) -> tensor<4x16xbf16>
  return
}

// -----

func.func @same_p2_reshape(%a: tensor<4x8xbf16>) {
  // expected-error @below {{mixes element types: 'tensor<4x8xbf16>' and 'tensor<32xf32>' as result 0}}
  %y = train.reshape %a : (tensor<4x8xbf16>) -> tensor<32xf32>
  return
}

// -----

func.func @wide_p3(%a: tensor<4x8xbf16>, %c: tensor<8xbf16>) {
  // expected-error @below {{operand 1 is 'tensor<8xbf16>', it must be f32}}
  %y = train.fused (%a, %c : tensor<4x8xbf16>, tensor<8xbf16>) channels [1] sums 0 -> (tensor<4x8xbf16>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @wide_p3_sum(%a: tensor<4x8x2x2xbf16, #train.layout<nhwc>>) {
  // expected-error @below {{result 0 is 'tensor<8xbf16>', it must be f32}}
  %y = train.fused (%a : tensor<4x8x2x2xbf16, #train.layout<nhwc>>) channels [] sums 1 -> (tensor<8xbf16>) {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @cast_c1(%a: tensor<4x8xf32>) {
  // expected-error @below {{changes no element type, or more than that and the layout, or a half that is an integer: 'tensor<4x8xf32>' to 'tensor<4x8xf32>'}}
  %y = train.cast %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @cast_c1_shape(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tensor<4x8xf32>' to 'tensor<8x4xbf16>'}}
  %y = train.cast %a : (tensor<4x8xf32>) -> tensor<8x4xbf16>
  return
}

// -----

func.func @loss_is_wide(%x: tensor<4x10xbf16>, %target: tensor<4x10xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of 32-bit float values, static, of at most 6 dimensions and less than 2^63 bytes, but got 'tensor<4x10xbf16>'}}
  %loss = train.mse %x, %target : (tensor<4x10xbf16>, tensor<4x10xf32>) -> tensor<f32>
  return
}

// -----

func.func @loss_backward_is_wide(%x: tensor<4x10xbf16>, %target: tensor<4x10xf32>) {
  // expected-error @below {{operand 0 is 'tensor<4x10xbf16>', it must be f32}}
  %dx = train.loss_backward mse %x, %target : (tensor<4x10xbf16>, tensor<4x10xf32>) -> tensor<4x10xbf16>
  return
}

// -----

func.func @codec_takes_f32(%x: tensor<4x8xbf16>) {
  // expected-error @below {{knows no codec 'fp16' for 'tensor<4x8xbf16>'}}
  %p = train.encode %x {codec = "fp16"} : (tensor<4x8xbf16>) -> tensor<64xi8>
  return
}

// -----

module attributes {train.precision = "bf16"} {
func.func @after_linearize(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-linearize leaves it; run sluice-assign-precision before that}}
  %y = train.relu %x {train.stage = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
}
