// RUN: sluice-opt %s --sluice-fuse=rows=true | FileCheck %s
// RUN: sluice-opt %s --sluice-fuse | FileCheck %s --check-prefix=APART
// With rows, what stands between two products of a transformer's backward half is one region over a matrix: LayerNorm's gradient with means of its rows, the
// residual's, that of dropout, and the sums of LayerNorm's parameters and of the next product's bias. What is left apart, and why.

// CHECK-LABEL: func.func @between_products
// CHECK-SAME: %[[DY:.*]]: tensor<6x8xf32>, %[[X:.*]]: tensor<6x8xf32>, %[[S:.*]]: tensor<8xf32>, %[[M:.*]]: tensor<6x1xf32>, %[[R:.*]]: tensor<6x1xf32>, %[[SKIP:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8x8xf32>
// CHECK-NEXT: %[[FLAT:.*]] = train.reshape %[[SKIP]] : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
// CHECK-NEXT: %[[ALL:.*]]:5 = train.fused({{.*}}) channels [] sums 3 -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK-SAME: train.rule = "normalize_reduce+layer_norm_backward+add+dropout"
// CHECK-COUNT-2: train.row_mean
// CHECK-NOT: train.row_mean
// CHECK: train.uniform
// CHECK: train.yield
// CHECK: train.matmul
// CHECK-NOT: train.fused
// CHECK-NOT: train.sum_to
// CHECK: return
// APART-LABEL: func.func @between_products
// APART: train.layer_norm_backward
// APART: train.sum_to
func.func @between_products(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>, %s: tensor<8xf32>, %m: tensor<6x1xf32>, %r: tensor<6x1xf32>, %skip: tensor<2x3x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<6x8xf32>) {
  %ds, %db = train.normalize_reduce %dy, %x, %m, %r {train.backward = 5 : i64} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %dx = train.layer_norm_backward %dy, %x, %s, %m, %r {train.backward = 5 : i64} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  %v = train.reshape %dx {train.backward = 4 : i64} : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %a = train.add %skip, %v {train.backward = 4 : i64} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %d = train.dropout %a {ratio = 1.0e-1 : f32, key = 7 : i64, train.backward = 3 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %f = train.reshape %d {train.backward = 2 : i64} : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %p = train.matmul %f, %w {train.backward = 1 : i64} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %b = train.sum_to %f {train.backward = 1 : i64} : (tensor<6x8xf32>) -> tensor<8xf32>
  return %a, %ds, %db, %b, %p : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<6x8xf32>
}

// A mean would be of what a draw is behind; rows of 2049 columns are more than a block has room for; forward regions stay as they are, and sums of what no
// region makes.
// CHECK-LABEL: func.func @drawn
// CHECK: train.rule = "dropout"
// CHECK: train.rule = "layer_norm_backward"
func.func @drawn(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>, %s: tensor<8xf32>, %m: tensor<6x1xf32>) -> tensor<6x8xf32> {
  %d = train.dropout %dy {ratio = 1.0e-1 : f32, key = 7 : i64, train.backward = 6 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %dx = train.layer_norm_backward %d, %x, %s, %m, %m {train.backward = 5 : i64} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  return %dx : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @long
// CHECK: train.layer_norm_backward
func.func @long(%dy: tensor<6x2049xf32>, %x: tensor<6x2049xf32>, %s: tensor<2049xf32>, %m: tensor<6x1xf32>) -> tensor<6x2049xf32> {
  %dx = train.layer_norm_backward %dy, %x, %s, %m, %m {train.backward = 5 : i64} : (tensor<6x2049xf32>, tensor<6x2049xf32>, tensor<2049xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x2049xf32>
  return %dx : tensor<6x2049xf32>
}

// CHECK-LABEL: func.func @left
// CHECK: train.fused({{.*}}) channels [] sums 0 -> (tensor<2x3x8xf32>)
// CHECK: train.sum_to
// CHECK: train.sum_to
func.func @left(%x: tensor<2x3x8xf32>, %y: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = train.relu %x {train.forward = 0 : i64} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %f = train.reshape %a {train.forward = 1 : i64} : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %b = train.sum_to %f {train.forward = 2 : i64} : (tensor<6x8xf32>) -> tensor<8xf32>
  %c = train.sum_to %y {train.backward = 2 : i64} : (tensor<6x8xf32>) -> tensor<8xf32>
  return %f, %b, %c : tensor<6x8xf32>, tensor<8xf32>, tensor<8xf32>
}
