// RUN: sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-assign-layouts --sluice-assign-precision --sluice-linearize --sluice-estimate-cost="device=h200 target=cuda" --sluice-plan-memory="strategy=vdnn-all device=h200 target=cuda" --sluice-apply-plan | FileCheck %s
// RUN: sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-assign-layouts --sluice-assign-precision --sluice-linearize --sluice-estimate-cost="device=h200 target=cuda" --sluice-plan-memory="strategy=hascoet device=h200 target=cuda allow-lossy=fp16,invert" --sluice-apply-plan | FileCheck %s --check-prefix=HALVES
// RUN: sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-assign-layouts --sluice-assign-precision --sluice-linearize --sluice-estimate-cost="device=h200 target=cuda" --sluice-plan-memory="strategy=freelunch device=h200 target=cuda allow-lossy=zfp" --sluice-apply-plan | FileCheck %s --check-prefix=ZFP
// RUN: sluice-opt %s --sluice-build-backward --sluice-fuse --sluice-assign-layouts --sluice-assign-precision --sluice-linearize --sluice-estimate-cost="device=h200 target=cuda" --sluice-plan-memory="strategy=freelunch,rate=16 device=h200 target=cuda allow-lossy=zfp" --sluice-apply-plan | FileCheck %s --check-prefix=LARGER
// Plans of a step in bf16: feature maps move with half the bytes, which no codec halves again; weights that were rounded for the step are no feature maps. zfp packs halves, at rates below their own.

// CHECK-LABEL: func.func @step
// CHECK-NOT: train.offload {{.*}}tensor<64x64x3x3xbf16
// CHECK: train.offload %{{.*}} : (tensor<4x64x8x8xbf16, #train.layout<nhwc>>)
// CHECK-NOT: train.offload {{.*}}tensor<64x64x3x3xbf16
// CHECK: return
// HALVES-NOT: codec
// HALVES: train.offload %{{.*}} : (tensor<4x64x8x8xbf16, #train.layout<nhwc>>)
// HALVES-NOT: codec
// ZFP: train.encode %{{.*}} {codec = "mask+zfp"{{.*}}} : (tensor<4x64x8x8xbf16, #train.layout<nhwc>>) ->
// LARGER-NOT: train.encode
module attributes {train.precision = "bf16", train.optimizer = "sgd"} {
train.variable @w1 role(parameter) init(zero) : tensor<64x64x3x3xf32>
train.variable @w2 role(parameter) init(zero) : tensor<64x64x3x3xf32>
func.func @step(%x: tensor<4x64x8x8xf32>, %target: tensor<4x64x8x8xf32>) -> tensor<f32> {
  %w1 = train.read @w1 : tensor<64x64x3x3xf32>
  %y = train.conv %x, %w1 {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x64x8x8xf32>, tensor<64x64x3x3xf32>) -> tensor<4x64x8x8xf32>
  %r = train.relu %y : (tensor<4x64x8x8xf32>) -> tensor<4x64x8x8xf32>
  %w2 = train.read @w2 : tensor<64x64x3x3xf32>
  %z = train.conv %r, %w2 {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x64x8x8xf32>, tensor<64x64x3x3xf32>) -> tensor<4x64x8x8xf32>
  %loss = train.mse %z, %target : (tensor<4x64x8x8xf32>, tensor<4x64x8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
