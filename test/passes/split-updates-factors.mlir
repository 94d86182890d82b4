// RUN: not sluice-opt %s --sluice-build-backward --sluice-split-updates=above=10000 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sluice-opt %s --sluice-build-backward "--sluice-split-updates=above=10000 insists=false" | FileCheck %s
// RUN: sluice-opt %s --sluice-pipeline="until=placed" --sluice-verify-schedule > /dev/null
// A weight that is a product of two: the gradient of each factor reads the other one, which may be updated before it.
// NONE: @step has no gradient of more than 10000 bytes
// CHECK-NOT: first
module attributes {train.loss_inputs = ["target"]} {
train.variable @a role(parameter) init(zero) : tensor<64x64xf32>
train.variable @b role(parameter) init(zero) : tensor<64x64xf32>
func.func @step(%x: tensor<4x64xf32>, %target: tensor<4x64xf32>) -> tensor<f32> {
  %a = train.read @a : tensor<64x64xf32>
  %b = train.read @b : tensor<64x64xf32>
  %w = train.matmul %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = train.matmul %x, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %loss = train.mse %y, %target : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
