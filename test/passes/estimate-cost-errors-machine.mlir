// RUN: sluice-opt %s --sluice-estimate-cost=device=%S/inputs/round.json --verify-diagnostics --split-input-file
// What no kernel of the host computes, and tensors that no machine holds.

func.func @step(%x: tensor<2x3x8x8xf16>, %k: tensor<4x3x3x3xf16>) -> tensor<2x4x6x6xf16> {
  // expected-error @below {{has tensors of fp16: the host runtime computes in fp32 and bf16}}
  %c = train.conv %x, %k {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x8x8xf16>, tensor<4x3x3x3xf16>) -> tensor<2x4x6x6xf16>
  return %c : tensor<2x4x6x6xf16>
}

// -----

// expected-error @below {{argument 0 is no tensor that fits a memory: 'tensor<?x4xf32>'}}
func.func @step(%x: tensor<?x4xf32>) {
  return
}
