// RUN: sluice-opt %s --sluice-fuse-epilogues --split-input-file | FileCheck %s
// RUN: sluice-opt %s --sluice-fuse-epilogues=convolutions=false --split-input-file | FileCheck %s
// RUN: sluice-opt %s --sluice-fuse-epilogues=products=false --split-input-file | FileCheck %s --check-prefix=NONE
// A layer's product computes Gelu by tanh, the product of the gradient behind it the slope and the sum that is the bias's gradient, through the reshapes of exports;
// what computes Gelu again is the first one. What cuBLASLt has no epilogue for stays, and so do f32 and what is not trained.

// NONE-NOT: matmul_gelu
module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[A:.*]]: tensor<32x16xf32>, %[[W:.*]]: tensor<64x16xf32>, %[[B:.*]]: tensor<64xf32>, %[[V:.*]]: tensor<16x64xf32>, %[[DY:.*]]: tensor<32x16xf32>
// CHECK-NEXT: %[[Z:.*]], %[[X:.*]] = train.matmul_gelu %[[A]], %[[W]], %[[B]] {train.forward = 0 : i64, transpose_b = true}
// CHECK-NEXT: %[[Y:.*]] = train.matmul %[[Z]], %[[V]] {train.forward = 4 : i64, transpose_b = true}
// CHECK-NEXT: %[[DX:.*]], %[[DB:.*]] = train.matmul_gelu_backward %[[DY]], %[[V]], %[[X]] {train.backward = 4 : i64}
// CHECK-NEXT: %[[ROW:.*]] = train.reshape %[[DB]] {train.backward = 0 : i64} : (tensor<64xf32>) -> tensor<1x64xf32>
// CHECK-NEXT: %[[DW:.*]] = train.matmul %[[DX]], %[[A]]
// CHECK-NEXT: return %[[Y]], %[[DW]], %[[ROW]]
func.func @layer(%a: tensor<32x16xf32>, %w: tensor<64x16xf32>, %b: tensor<64xf32>, %v: tensor<16x64xf32>, %dy: tensor<32x16xf32>) -> (tensor<32x16xf32>, tensor<64x16xf32>, tensor<1x64xf32>) {
  %p = train.matmul %a, %w, %b {transpose_b = true, train.forward = 0 : i64} : (tensor<32x16xf32>, tensor<64x16xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  %x = train.reshape %p {train.forward = 1 : i64} : (tensor<32x64xf32>) -> tensor<4x8x64xf32>
  %z = train.gelu %x {tanh = true, train.forward = 2 : i64} : (tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %q = train.reshape %z {train.forward = 3 : i64} : (tensor<4x8x64xf32>) -> tensor<32x64xf32>
  %y = train.matmul %q, %v {transpose_b = true, train.forward = 4 : i64} : (tensor<32x64xf32>, tensor<16x64xf32>) -> tensor<32x16xf32>
  %d = train.matmul %dy, %v {train.backward = 4 : i64} : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %dz = train.reshape %d {train.backward = 3 : i64} : (tensor<32x64xf32>) -> tensor<4x8x64xf32>
  %dx = train.gelu_backward %dz, %x {tanh = true, train.backward = 2 : i64} : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %dp = train.reshape %dx {train.backward = 1 : i64} : (tensor<4x8x64xf32>) -> tensor<32x64xf32>
  %dw = train.matmul %dp, %a {transpose_a = true, train.backward = 0 : i64} : (tensor<32x64xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  %db = train.sum_to %dp {factor = 1.0 : f32, train.backward = 0 : i64} : (tensor<32x64xf32>) -> tensor<1x64xf32>
  return %y, %dw, %db : tensor<32x16xf32>, tensor<64x16xf32>, tensor<1x64xf32>
}

// Without a bias; the sum of the gradient is another one.
// CHECK-LABEL: func.func @plain
// CHECK: %{{.*}}, %[[X:.*]] = train.matmul_gelu %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
// CHECK: %[[DX:.*]] = train.matmul_gelu_backward %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[X]] {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: train.sum_to %[[DX]]
func.func @plain(%a: tensor<32x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x16xf32>, %dy: tensor<32x16xf32>) -> (tensor<32x64xf32>, tensor<32x1xf32>) {
  %x = train.matmul %a, %w : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %z = train.gelu %x {tanh = true} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %d = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %dx = train.gelu_backward %d, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %s = train.sum_to %dx {factor = 1.0 : f32} : (tensor<32x64xf32>) -> tensor<32x1xf32>
  return %z, %s : tensor<32x64xf32>, tensor<32x1xf32>
}

// Another op reads the product first: Gelu's result would live longer. The gradient is fused all the same.
// CHECK-LABEL: func.func @read_before
// CHECK: %[[X:.*]] = train.matmul %
// CHECK: train.sigmoid %[[X]]
// CHECK: train.gelu %[[X]]
// CHECK: train.matmul_gelu_backward %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[X]]
func.func @read_before(%a: tensor<32x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x16xf32>, %dy: tensor<32x16xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
  %x = train.matmul %a, %w : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %e = train.sigmoid %x : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %z = train.gelu %x {tanh = true} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %d = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %dx = train.gelu_backward %d, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %e, %z, %dx : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
}

// Gelu by erf, rows of 12, a gradient that somebody else reads, a product with a factor, and an evaluation.
// CHECK-LABEL: func.func @others
// CHECK-NOT: matmul_gelu
// CHECK: return
func.func @others(%a: tensor<32x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x16xf32>, %dy: tensor<32x16xf32>, %u: tensor<12x16xf32>, %t: tensor<16x12xf32>) -> (tensor<32x64xf32>, tensor<32x12xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
  %x = train.matmul %a, %w : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %z = train.gelu %x : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %d = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %dx = train.gelu_backward %d, %x : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %f = train.matmul %a, %t : (tensor<32x16xf32>, tensor<16x12xf32>) -> tensor<32x12xf32>
  %g = train.matmul %dy, %u {transpose_b = true} : (tensor<32x16xf32>, tensor<12x16xf32>) -> tensor<32x12xf32>
  %h = train.gelu_backward %g, %f {tanh = true} : (tensor<32x12xf32>, tensor<32x12xf32>) -> tensor<32x12xf32>
  %i = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %j = train.gelu_backward %i, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %k = train.matmul %dy, %v {transpose_b = true, alpha = 2.0 : f32} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %l = train.gelu_backward %k, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %e = train.gelu %x {tanh = true} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %o = train.add %j, %i : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = train.add %l, %dx : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %z, %h, %o, %p, %e : tensor<32x64xf32>, tensor<32x12xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
}
}

// -----

// In fp16 the sum of scaled gradients stays f32.
module attributes {train.precision = "fp16"} {
// CHECK-LABEL: func.func @fp16
// CHECK: %[[DX:.*]] = train.matmul_gelu_backward
// CHECK-NEXT: train.sum_to %[[DX]]
func.func @fp16(%a: tensor<32x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x16xf32>, %dy: tensor<32x16xf32>) -> tensor<64xf32> {
  %x = train.matmul %a, %w : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %d = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %dx = train.gelu_backward %d, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %s = train.sum_to %dx {factor = 1.0 : f32} : (tensor<32x64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
}

// -----

// CHECK-LABEL: func.func @f32
// CHECK-NOT: matmul_gelu
// CHECK: return
func.func @f32(%a: tensor<32x16xf32>, %w: tensor<16x64xf32>, %v: tensor<64x16xf32>, %dy: tensor<32x16xf32>) -> tensor<32x64xf32> {
  %x = train.matmul %a, %w : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %d = train.matmul %dy, %v {transpose_b = true} : (tensor<32x16xf32>, tensor<64x16xf32>) -> tensor<32x64xf32>
  %dx = train.gelu_backward %d, %x {tanh = true} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %dx : tensor<32x64xf32>
}
