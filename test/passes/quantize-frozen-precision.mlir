// RUN: sluice-opt %s --split-input-file --sluice-quantize-frozen=target=cuda --sluice-assign-precision | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-quantize-frozen --sluice-assign-precision | FileCheck %s --check-prefix=HOST
// With --precision=bf16 floats are made in 16 bits at once, and a weight that lies in bf16 is read as it is.

module attributes {train.precision = "bf16"} {
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 4 group 64 along 0>}
train.variable @v role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 16 group 0 along 0>}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: %[[Q:.*]] = train.read @w : tensor<2304xi8>
  %w = train.read @w : tensor<64x64xf32>
  // CHECK: %[[V:.*]] = train.read @v : tensor<64x64xbf16>
  %v = train.read @v : tensor<64x64xf32>
  // CHECK: %[[W:.*]] = train.dequantize %[[Q]] {{.*}} -> tensor<64x64xbf16>
  // CHECK: train.matmul %{{.*}}, %[[W]] {{.*}} -> tensor<4x64xbf16>
  // HOST: train.quantized_matmul %{{.*}} : (tensor<4x64xbf16>, tensor<2304xi8>) -> tensor<4x64xbf16>
  // HOST-NEXT: train.matmul %{{.*}}(tensor<4x64xbf16>, tensor<64x64xbf16>)
  %y = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, %[[V]] {{.*}}(tensor<4x64xbf16>, tensor<64x64xbf16>)
  %z = train.matmul %y, %v {train.forward = 1 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %z : tensor<4x64xf32>
}
}
