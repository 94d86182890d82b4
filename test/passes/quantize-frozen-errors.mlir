// RUN: sluice-opt --sluice-quantize-frozen --verify-diagnostics %s
// The pass refuses what is linearized: its new ops would belong to no stage.

train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>}

func.func @step(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %w = train.read @w : tensor<64x64xf32>
  // expected-error @below {{is as sluice-linearize leaves it; run sluice-quantize-frozen before that}}
  %y = train.matmul %x, %w {train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
