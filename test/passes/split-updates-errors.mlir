// RUN: not sluice-opt %s --sluice-build-backward --sluice-split-updates=above=40 2>&1 | FileCheck %s
// RUN: not sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-split-updates=above=16 2>&1 | FileCheck %s --check-prefix=FUSED
// RUN: not sluice-opt %s --sluice-pipeline="until=training weights-above=1000000" 2>&1 | FileCheck %s --check-prefix=SMALL
// CHECK: error: @step has no gradient of more than 40 bytes that one product or convolution makes for one update alone; updates that wait for a norm or for other batches need it whole
// SMALL: error: @step has no gradient of more than 1000000 bytes
// FUSED: error: 'train.fused' op is as sluice-fuse leaves it; run sluice-split-updates before that

module attributes {train.loss_inputs = ["target"]} {
train.variable @w role(parameter) init(zero) : tensor<5x4xf32>
train.variable @v role(parameter) init(zero) : tensor<4xf32>
// Rows of 16 bytes begin at a multiple of 256 bytes only from the sixteenth on.
func.func @step(%x: tensor<2x4xf32>, %target: tensor<2x5xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<5x4xf32>
  %v = train.read @v : tensor<4xf32>
  %z = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %y = train.matmul %z, %w {transpose_b = true} : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  %loss = train.mse %y, %target : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
