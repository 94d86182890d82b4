// RUN: sluice-opt --sluice-assign-layouts --split-input-file --verify-diagnostics %s
// What later passes have done would be undone. What it leaves is verified: a train.reorder changes the layout alone, and one region has one layout.

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

// -----

func.func @after_precision(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-assign-precision leaves it; run sluice-assign-layouts before that}}
  %y = train.cast %x : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  return
}

// -----

func.func @after_linearize(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-linearize leaves it; run sluice-assign-layouts before that}}
  %y = train.relu %x {train.stage = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
