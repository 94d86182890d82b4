// RUN: sluice-opt --split-input-file --verify-diagnostics %s
// The pass refuses nothing; what it leaves is verified: a train.reorder changes the layout alone, and one region has one layout.

func.func @reorder_c1(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{changes more than the layout: 'tensor<2x3x4x4xf32>' to 'tensor<2x4x4x3xf32, #train.layout<nhwc>>'}}
  %y = train.reorder %x : (tensor<2x3x4x4xf32>) -> tensor<2x4x4x3xf32, #train.layout<nhwc>>
  return
}

// -----

func.func @fused_c2_layout(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{operand 0 of type 'tensor<2x3x4x4xf32>' has another layout than 'tensor<2x3x4x4xf32, #train.layout<nhwc>>'}}
  %y = train.fused (%x : tensor<2x3x4x4xf32>) channels [] sums 0 -> (tensor<2x3x4x4xf32, #train.layout<nhwc>>) {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  return
}
