// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Batch and heads that were joined to one dimension are told apart where that lets attention read and write in place.

module {
  // PyTorch's multi-head attention of [batch, sequence] where weights are asked for: all is [sequence, batch * heads] in between.
  // CHECK-LABEL: func.func @weights_asked_for
  // CHECK-NOT: train.transpose
  // CHECK: %[[QKV:.*]] = train.matmul %{{.*}}, %arg1, %arg2 {transpose_b = true} : (tensor<6x32xf32>, tensor<96x32xf32>, tensor<96xf32>) -> tensor<6x96xf32>
  // CHECK: %[[M:.*]] = train.reshape %arg5 : (tensor<8x1x3xf32>) -> tensor<2x4x1x3xf32>
  // CHECK: train.attention %[[QKV]], %[[QKV]], %[[QKV]], %[[M]] {k_view = #train.view<[2, 4, 3, 8] from 32 by [288, 8, 96]>, q_view = #train.view<[2, 4, 3, 8] from 0 by [288, 8, 96]>, scale = 5.000000e-01 : f32, v_view = #train.view<[2, 4, 3, 8] from 64 by [288, 8, 96]>, y_order = array<i64: 0, 2, 1, 3>}
  // CHECK-NOT: train.transpose
  // CHECK: train.matmul %{{.*}}, %arg3, %arg4
  // CHECK-NOT: train.transpose
  // CHECK: return
  func.func @weights_asked_for(%x: tensor<2x3x32xf32>, %w: tensor<96x32xf32>, %b: tensor<96xf32>, %o: tensor<32x32xf32>, %c: tensor<32xf32>, %m: tensor<8x1x3xf32>) -> tensor<2x3x32xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x32xf32>) -> tensor<3x2x32xf32>
    %r = train.reshape %t : (tensor<3x2x32xf32>) -> tensor<6x32xf32>
    %p = train.matmul %r, %w {transpose_b = true} : (tensor<6x32xf32>, tensor<96x32xf32>) -> tensor<6x96xf32>
    %p3 = train.reshape %p : (tensor<6x96xf32>) -> tensor<3x2x96xf32>
    %a = train.add %b, %p3 : (tensor<96xf32>, tensor<3x2x96xf32>) -> tensor<3x2x96xf32>
    %five = train.reshape %a : (tensor<3x2x96xf32>) -> tensor<1x3x2x3x32xf32>
    %f = train.transpose %five {permutation = array<i64: 3, 1, 2, 0, 4>} : (tensor<1x3x2x3x32xf32>) -> tensor<3x3x2x1x32xf32>
    %q0 = train.slice %f {axis = 0 : i64, start = 0 : i64, length = 1 : i64} : (tensor<3x3x2x1x32xf32>) -> tensor<1x3x2x1x32xf32>
    %k0 = train.slice %f {axis = 0 : i64, start = 1 : i64, length = 1 : i64} : (tensor<3x3x2x1x32xf32>) -> tensor<1x3x2x1x32xf32>
    %v0 = train.slice %f {axis = 0 : i64, start = 2 : i64, length = 1 : i64} : (tensor<3x3x2x1x32xf32>) -> tensor<1x3x2x1x32xf32>
    %q1 = train.reshape %q0 : (tensor<1x3x2x1x32xf32>) -> tensor<3x8x8xf32>
    %k1 = train.reshape %k0 : (tensor<1x3x2x1x32xf32>) -> tensor<3x8x8xf32>
    %v1 = train.reshape %v0 : (tensor<1x3x2x1x32xf32>) -> tensor<3x8x8xf32>
    %q = train.transpose %q1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
    %v = train.transpose %v1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
    %qs = train.scale %q {factor = 5.0e-1 : f32} : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %kt = train.transpose %k1 {permutation = array<i64: 1, 2, 0>} : (tensor<3x8x8xf32>) -> tensor<8x8x3xf32>
    %s = train.matmul %qs, %kt : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %l = train.add %m, %s : (tensor<8x1x3xf32>, tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
    %e = train.softmax %l {axis = 2 : i64} : (tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
    %y = train.matmul %e, %v : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %yt = train.transpose %y {permutation = array<i64: 1, 0, 2>} : (tensor<8x3x8xf32>) -> tensor<3x8x8xf32>
    %yr = train.reshape %yt : (tensor<3x8x8xf32>) -> tensor<6x32xf32>
    %z = train.matmul %yr, %o, %c {transpose_b = true} : (tensor<6x32xf32>, tensor<32x32xf32>, tensor<32xf32>) -> tensor<6x32xf32>
    %z3 = train.reshape %z : (tensor<6x32xf32>) -> tensor<3x2x32xf32>
    %back = train.transpose %z3 {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x32xf32>) -> tensor<2x3x32xf32>
    return %back : tensor<2x3x32xf32>
  }

  // Written out for bmm: queries of one tensor, keys and values of another.
  // CHECK-LABEL: func.func @joined_by_hand
  // CHECK-SAME: (%[[Q:.*]]: tensor<2x3x32xf32>, %[[K:.*]]: tensor<2x5x32xf32>, %[[V:.*]]: tensor<2x5x32xf32>)
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[K]], %[[V]] {k_view = #train.view<[2, 4, 5, 8] from 0 by [160, 8, 32]>, q_view = #train.view<[2, 4, 3, 8] from 0 by [96, 8, 32]>, scale = 1.000000e+00 : f32, v_view = #train.view<[2, 4, 5, 8] from 0 by [160, 8, 32]>, y_order = array<i64: 0, 2, 1, 3>}
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[Y]] : (tensor<2x3x4x8xf32>) -> tensor<2x3x32xf32>
  // CHECK-NEXT: return %[[R]]
  func.func @joined_by_hand(%x: tensor<2x3x32xf32>, %kx: tensor<2x5x32xf32>, %vx: tensor<2x5x32xf32>) -> tensor<2x3x32xf32> {
    %q4 = train.reshape %x : (tensor<2x3x32xf32>) -> tensor<2x3x4x8xf32>
    %k4 = train.reshape %kx : (tensor<2x5x32xf32>) -> tensor<2x5x4x8xf32>
    %v4 = train.reshape %vx : (tensor<2x5x32xf32>) -> tensor<2x5x4x8xf32>
    %qt = train.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
    %kt = train.transpose %k4 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
    %vt = train.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
    %q = train.reshape %qt : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %k = train.reshape %kt : (tensor<2x4x5x8xf32>) -> tensor<8x5x8xf32>
    %v = train.reshape %vt : (tensor<2x4x5x8xf32>) -> tensor<8x5x8xf32>
    %s = train.matmul %q, %k {transpose_b = true} : (tensor<8x3x8xf32>, tensor<8x5x8xf32>) -> tensor<8x3x5xf32>
    %e = train.softmax %s {axis = 2 : i64} : (tensor<8x3x5xf32>) -> tensor<8x3x5xf32>
    %y = train.matmul %e, %v : (tensor<8x3x5xf32>, tensor<8x5x8xf32>) -> tensor<8x3x8xf32>
    %y4 = train.reshape %y : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %yt = train.transpose %y4 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<2x3x4x8xf32>
    %yr = train.reshape %yt : (tensor<2x3x4x8xf32>) -> tensor<2x3x32xf32>
    return %yr : tensor<2x3x32xf32>
  }
}
