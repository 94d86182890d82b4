// RUN: not sluice-opt %s --sluice-build-backward --sluice-split-step=parts=3 2>&1 | FileCheck %s
// RUN: not sluice-opt %s --sluice-build-backward "--sluice-split-step=parts=2 above=121" 2>&1 | FileCheck %s --check-prefix=ABOVE
// RUN: not sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-split-step=parts=2 2>&1 | FileCheck %s --check-prefix=FUSED
// CHECK: error: @step cannot be computed in 3 parts of the batch: it has 2 samples
// ABOVE: error: @step cannot be computed in 2 parts of the batch: no op whose samples are apart reads and writes 121 bytes of them
// FUSED: error: 'train.fused' op is as sluice-fuse leaves it; run sluice-split-step before that

train.variable @w role(parameter) init(zero) : tensor<5xf32>
func.func @step(%x: tensor<2x5xf32>, %target: tensor<2x5xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<5xf32>
  %y = train.mul %x, %w : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  %loss = train.mse %y, %target : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
