// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Rows in another order between two transposes, or between one and attention, are taken in the order that is there.

module {
  // PyTorch's multi-head attention: [batch, sequence] becomes [sequence, batch] before the projections, and back behind them.
  // CHECK-LABEL: func.func @heads
  // CHECK-NOT: train.transpose
  // CHECK: %[[QKV:.*]] = train.matmul %{{.*}}, %arg1, %arg2 {transpose_b = true} : (tensor<6x32xf32>, tensor<96x32xf32>, tensor<96xf32>) -> tensor<6x96xf32>
  // CHECK: %[[Y:.*]], %{{.*}} = train.attention %[[QKV]], %[[QKV]], %[[QKV]] {k_view = #train.view<[2, 4, 3, 8] from 32 by [288, 8, 96]>, q_view = #train.view<[2, 4, 3, 8] from 0 by [288, 8, 96]>, scale = 5.000000e-01 : f32, v_view = #train.view<[2, 4, 3, 8] from 64 by [288, 8, 96]>, y_order = array<i64: 0, 2, 1, 3>} : (tensor<6x96xf32>, tensor<6x96xf32>, tensor<6x96xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  // CHECK-NOT: train.transpose
  // CHECK: train.matmul %{{.*}}, %arg3, %arg4
  // CHECK-NOT: train.transpose
  // CHECK: return
  func.func @heads(%x: tensor<2x3x32xf32>, %w: tensor<96x32xf32>, %b: tensor<96xf32>, %o: tensor<32x32xf32>, %c: tensor<32xf32>) -> tensor<2x3x32xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x32xf32>) -> tensor<3x2x32xf32>
    %r = train.reshape %t : (tensor<3x2x32xf32>) -> tensor<6x32xf32>
    %p = train.matmul %r, %w {transpose_b = true} : (tensor<6x32xf32>, tensor<96x32xf32>) -> tensor<6x96xf32>
    %p3 = train.reshape %p : (tensor<6x96xf32>) -> tensor<3x2x96xf32>
    %a = train.add %b, %p3 : (tensor<96xf32>, tensor<3x2x96xf32>) -> tensor<3x2x96xf32>
    %five = train.reshape %a : (tensor<3x2x96xf32>) -> tensor<1x3x2x3x32xf32>
    %f = train.transpose %five {permutation = array<i64: 3, 1, 2, 0, 4>} : (tensor<1x3x2x3x32xf32>) -> tensor<3x3x2x1x32xf32>
    %all = train.reshape %f : (tensor<3x3x2x1x32xf32>) -> tensor<3x3x2x32xf32>
    %q0 = train.slice %all {axis = 0 : i64, start = 0 : i64, length = 1 : i64} : (tensor<3x3x2x32xf32>) -> tensor<1x3x2x32xf32>
    %k0 = train.slice %all {axis = 0 : i64, start = 1 : i64, length = 1 : i64} : (tensor<3x3x2x32xf32>) -> tensor<1x3x2x32xf32>
    %v0 = train.slice %all {axis = 0 : i64, start = 2 : i64, length = 1 : i64} : (tensor<3x3x2x32xf32>) -> tensor<1x3x2x32xf32>
    %q1 = train.reshape %q0 : (tensor<1x3x2x32xf32>) -> tensor<3x8x8xf32>
    %k1 = train.reshape %k0 : (tensor<1x3x2x32xf32>) -> tensor<3x8x8xf32>
    %v1 = train.reshape %v0 : (tensor<1x3x2x32xf32>) -> tensor<3x8x8xf32>
    %q2 = train.transpose %q1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
    %k2 = train.transpose %k1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
    %v2 = train.transpose %v1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
    %q = train.reshape %q2 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %k = train.reshape %k2 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %v = train.reshape %v2 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %y, %sums = train.attention %q, %k, %v {scale = 5.0e-1 : f32} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
    %yt = train.transpose %y {permutation = array<i64: 2, 0, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<3x2x4x8xf32>
    %yr = train.reshape %yt : (tensor<3x2x4x8xf32>) -> tensor<6x32xf32>
    %z = train.matmul %yr, %o, %c {transpose_b = true} : (tensor<6x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<6x32xf32>
    %z3 = train.reshape %z : (tensor<6x32xf32>) -> tensor<3x2x32xf32>
    %back = train.transpose %z3 {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x32xf32>) -> tensor<2x3x32xf32>
    return %back : tensor<2x3x32xf32>
  }

  // Not back to the order before, but to one that the transpose can give itself.
  // CHECK-LABEL: func.func @other_order
  // CHECK-NEXT: train.transpose %arg0 {permutation = array<i64: 1, 2, 0, 3>}
  // CHECK: train.matmul
  // CHECK-NOT: train.transpose
  // CHECK: return
  func.func @other_order(%x: tensor<2x3x5x8xf32>, %w: tensor<8x4xf32>) -> tensor<3x5x2x4xf32> {
    %t = train.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x5x8xf32>) -> tensor<2x5x3x8xf32>
    %p = train.matmul %t, %w : (tensor<2x5x3x8xf32>, tensor<8x4xf32>) -> tensor<2x5x3x4xf32>
    %back = train.transpose %p {permutation = array<i64: 2, 1, 0, 3>} : (tensor<2x5x3x4xf32>) -> tensor<3x5x2x4xf32>
    return %back : tensor<3x5x2x4xf32>
  }

  // A sum with a row of its own for each member of the sequence, or another reader in between: transposes stay.
  // CHECK-LABEL: func.func @own_rows
  // CHECK-COUNT-2: train.transpose
  func.func @own_rows(%x: tensor<2x3x8xf32>, %b: tensor<3x1x8xf32>) -> tensor<2x3x8xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
    %a = train.add %t, %b : (tensor<3x2x8xf32>, tensor<3x1x8xf32>) -> tensor<3x2x8xf32>
    %back = train.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x8xf32>) -> tensor<2x3x8xf32>
    return %back : tensor<2x3x8xf32>
  }
  // CHECK-LABEL: func.func @read_between
  // CHECK-COUNT-2: train.transpose
  func.func @read_between(%x: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<3x2x8xf32>) {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
    %a = train.add %t, %b : (tensor<3x2x8xf32>, tensor<8xf32>) -> tensor<3x2x8xf32>
    %back = train.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x8xf32>) -> tensor<2x3x8xf32>
    return %back, %a : tensor<2x3x8xf32>, tensor<3x2x8xf32>
  }
  // Columns become rows: they stay in their order.
  // CHECK-LABEL: func.func @columns
  // CHECK-COUNT-2: train.transpose
  func.func @columns(%x: tensor<2x3x8xf32>, %w: tensor<4x5xf32>) -> tensor<4x3x5xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
    %r = train.reshape %t : (tensor<3x2x8xf32>) -> tensor<3x4x4xf32>
    %p = train.matmul %r, %w : (tensor<3x4x4xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    %back = train.transpose %p {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
    return %back : tensor<4x3x5xf32>
  }

  // A row behind a product is its bias, and the product with one matrix a single one; a row for each member, or a product that others read, is not.
  // CHECK-LABEL: func.func @bias
  // CHECK: %[[R:.*]] = train.reshape %arg0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  // CHECK: %[[B:.*]] = train.reshape %arg2 : (tensor<1x1x4xf32>) -> tensor<4xf32>
  // CHECK: %[[P:.*]] = train.matmul %[[R]], %arg1, %[[B]] : (tensor<6x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  // CHECK: %[[Y:.*]] = train.reshape %[[P]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: return %[[Y]]
  func.func @bias(%x: tensor<2x3x8xf32>, %w: tensor<8x4xf32>, %b: tensor<1x1x4xf32>) -> tensor<2x3x4xf32> {
    %p = train.matmul %x, %w : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %y = train.add %b, %p : (tensor<1x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %y : tensor<2x3x4xf32>
  }
  // Where exports reshape the rows before they add it, too, unless that makes other rows of them.
  // CHECK-LABEL: func.func @bias_behind_reshape
  // CHECK: %[[P:.*]] = train.matmul %arg0, %arg1, %arg2 : (tensor<6x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  // CHECK: %[[Y:.*]] = train.reshape %[[P]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: %[[Q:.*]] = train.matmul %arg0, %arg1 :
  // CHECK: %[[Z:.*]] = train.add
  // CHECK: return %[[Y]], %[[Z]]
  func.func @bias_behind_reshape(%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>, %c: tensor<2xf32>) -> (tensor<2x3x4xf32>, tensor<12x2xf32>) {
    %p = train.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %r = train.reshape %p : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
    %y = train.add %b, %r : (tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %q = train.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %s = train.reshape %q : (tensor<6x4xf32>) -> tensor<12x2xf32>
    %z = train.add %s, %c : (tensor<12x2xf32>, tensor<2xf32>) -> tensor<12x2xf32>
    return %y, %z : tensor<2x3x4xf32>, tensor<12x2xf32>
  }

  // CHECK-LABEL: func.func @no_bias
  // CHECK: train.matmul %arg0, %arg1 :
  // CHECK: train.add
  // CHECK: train.matmul %arg0, %arg1 :
  // CHECK: train.add
  func.func @no_bias(%x: tensor<2x3x8xf32>, %w: tensor<8x4xf32>, %b: tensor<2x1x4xf32>, %c: tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %p = train.matmul %x, %w : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %y = train.add %p, %b : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
    %q = train.matmul %x, %w : (tensor<2x3x8xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
    %z = train.add %q, %c : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
    return %y, %q, %z : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}
