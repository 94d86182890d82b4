// RUN: sluice-opt --split-input-file --verify-diagnostics %s --sluice-fuse-epilogues
// The pass refuses what is fused already; what it is not for stays (fuse-epilogues.mlir); what it leaves is verified as ever.

module attributes {train.precision = "bf16"} {
func.func @conv_backward_norm_c2(%d: tensor<2x6x4x4xf32>, %w: tensor<6x3x1x1xf32>, %z: tensor<2x3x4x4xf32>, %v: tensor<2xf32>) {
  // expected-error @below {{has statistics 'tensor<2xf32>' of 3 channels}}
  %x, %s, %b = train.conv_backward_norm %d, %w, %z, %z, %v, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x3x1x1xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3x4x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}
}

// -----

func.func @matmul_gelu_c1(%a: tensor<16x8xf32>, %b: tensor<8x24xf32>, %bias: tensor<1x24xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{bias 'tensor<1x24xf32>' is no row of 'tensor<16x24xf32>'}}
  %y, %x = train.matmul_gelu %a, %b, %bias : (tensor<16x8xf32>, tensor<8x24xf32>, tensor<1x24xf32>) -> (tensor<16x24xf32>, tensor<16x24xf32>)
  return
}

// -----

func.func @matmul_gelu_c2(%a: tensor<16x12xf32>, %b: tensor<12x24xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{gelu of a product of 'tensor<16x12xf32>' and 'tensor<12x24xf32>': extents are no multiples of 8}}
  %y, %x = train.matmul_gelu %a, %b : (tensor<16x12xf32>, tensor<12x24xf32>) -> (tensor<16x24xf32>, tensor<16x24xf32>)
  return
}

// -----

func.func @matmul_gelu_backward_c1(%a: tensor<16x8xf32>, %b: tensor<8x24xf32>, %x: tensor<16x24xf32>) {
  // expected-error @below {{has a sum 'tensor<16xf32>' of 'tensor<16x24xf32>'}}
  %dx, %db = train.matmul_gelu_backward %a, %b, %x : (tensor<16x8xf32>, tensor<8x24xf32>, tensor<16x24xf32>) -> (tensor<16x24xf32>, tensor<16xf32>)
  return
}

// -----

func.func @matmul_gelu_backward_c2(%a: tensor<16x8xf32>, %b: tensor<8x20xf32>, %x: tensor<16x20xf32>) {
  // expected-error @below {{multiplies 'tensor<16x8xf32>' and 'tensor<8x20xf32>', whose extents are no multiples of 8}}
  %dx = train.matmul_gelu_backward %a, %b, %x : (tensor<16x8xf32>, tensor<8x20xf32>, tensor<16x20xf32>) -> tensor<16x20xf32>
  return
}

// -----

module attributes {train.precision = "bf16"} {
func.func @after_fuse(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-fuse leaves it; run sluice-fuse-epilogues before that}}
  %y = train.fused (%x : tensor<2x3xf32>) channels [] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  return
}
}
