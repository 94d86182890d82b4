// RUN: sluice-opt %s --split-input-file --sluice-quantize-frozen=target=cuda | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-quantize-frozen | FileCheck %s --check-prefix=HOST
// A weight that is held fixed, in each form, read by a product and by the gradient of its other factor: the smallest step in which floats could be kept
// from the forward half to the backward one.

// 64 x 64 bytes behind one scale a column.
// CHECK-LABEL: train.variable @w
// CHECK-SAME: tensor<4352xi8>
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>}
// CHECK: train.variable @other {{.*}}tensor<64x64xf32>
train.variable @other role(constant) init(file) : tensor<64x64xf32>

// CHECK-LABEL: func.func @step
// HOST-LABEL: func.func @step
func.func @step(%x: tensor<4x64xf32>, %dy: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: %[[Q:.*]] = train.read @w : tensor<4352xi8>
  %w = train.read @w : tensor<64x64xf32>
  %other = train.read @other : tensor<64x64xf32>
  // CHECK: %[[W:.*]] = train.dequantize %[[Q]] {form = #train.quantized<[64, 64] bits 8 group 64 along 0>, train.forward = 0 : i64} : (tensor<4352xi8>) -> tensor<64x64xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, %[[W]] {{.*}}train.forward = 0
  // HOST: %[[Q:.*]] = train.read @w : tensor<4352xi8>
  // HOST: train.quantized_matmul %{{.*}}, %[[Q]] {form = #train.quantized<[64, 64] bits 8 group 64 along 0>, train.forward = 0 : i64} : (tensor<4x64xf32>, tensor<4352xi8>) -> tensor<4x64xf32>
  %y = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, %{{.*}} {{.*}}train.forward = 1
  %z = train.matmul %y, %other {train.forward = 1 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  // CHECK-NEXT: %[[V:.*]] = train.dequantize %[[Q]] {{.*}}train.backward = 0
  // CHECK-NEXT: train.matmul %{{.*}}, %[[V]] {{.*}}train.backward = 0
  // HOST: train.quantized_matmul %{{.*}}, %[[Q]] {{.*}}train.backward = 0{{.*}}transpose_b = true
  %dx = train.matmul %dy, %w {train.backward = 0 : i64, transpose_b = true} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %dx : tensor<4x64xf32>
}

// Predictions read the same bytes.
// CHECK-LABEL: func.func @evaluate
func.func @evaluate(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: train.read @w : tensor<4352xi8>
  // CHECK-NEXT: train.dequantize
  %w = train.read @w : tensor<64x64xf32>
  %y = train.matmul %x, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// -----

// Halves need no op of their own.
// CHECK-LABEL: train.variable @w
// CHECK-SAME: tensor<64x64xbf16>
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 16 group 0 along 0>}

// CHECK-LABEL: func.func @from_halves
// HOST-LABEL: func.func @from_halves
func.func @from_halves(%x: tensor<4x64xf32>, %dy: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: %[[Q:.*]] = train.read @w : tensor<64x64xbf16>
  // CHECK-NEXT: %[[W:.*]] = train.cast %[[Q]] {train.forward = 0 : i64} : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, %[[W]]
  // HOST: train.quantized_matmul %{{.*}} : (tensor<4x64xf32>, tensor<64x64xbf16>) -> tensor<4x64xf32>
  %w = train.read @w : tensor<64x64xf32>
  %y = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// -----

// 128 scales, as many zero points, and half a byte an element.
// CHECK-LABEL: train.variable @w
// CHECK-SAME: tensor<3072xi8> {train.quantized = #train.quantized<[64, 64] bits 4 group 32 along 1 coding(asymmetric)>}
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 4 group 32 along 1 coding(asymmetric)>}
// 64 scales of rows.
// CHECK: train.variable @v
// CHECK-SAME: tensor<2304xi8> {train.quantized = #train.quantized<[64, 64] bits 4 group 64 along 1 coding(normal_float)>}
train.variable @v role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 4 group 64 along 1 coding(normal_float)>}

// CHECK-LABEL: func.func @evaluate
func.func @evaluate(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: train.dequantize %{{.*}} {form = #train.quantized<[64, 64] bits 4 group 32 along 1 coding(asymmetric)>}
  // CHECK: train.dequantize %{{.*}} {form = #train.quantized<[64, 64] bits 4 group 64 along 1 coding(normal_float)>}
  %w = train.read @w : tensor<64x64xf32>
  %v = train.read @v : tensor<64x64xf32>
  %y = train.matmul %x, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %z = train.matmul %y, %v : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %z : tensor<4x64xf32>
}

// -----

// A left factor, and the right one of a product that reads its left one transposed, are floats on the host, too.
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>}

// HOST-LABEL: func.func @other_ways
// HOST-NOT: train.quantized_matmul
// HOST: return
func.func @other_ways(%x: tensor<64x4xf32>) -> (tensor<64x4xf32>, tensor<4x64xf32>) {
  %w = train.read @w : tensor<64x64xf32>
  %y = train.matmul %w, %x : (tensor<64x64xf32>, tensor<64x4xf32>) -> tensor<64x4xf32>
  %z = train.matmul %x, %w {transpose_a = true} : (tensor<64x4xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %y, %z : tensor<64x4xf32>, tensor<4x64xf32>
}

// -----

// Where products read halves, halves are factors as they are.
module attributes {train.precision = "bf16"} {
train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 16 group 0 along 0>}

// HOST-LABEL: func.func @halves
// HOST: train.cast
// HOST-NEXT: train.matmul
func.func @halves(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %w = train.read @w : tensor<64x64xf32>
  %y = train.matmul %x, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
}
