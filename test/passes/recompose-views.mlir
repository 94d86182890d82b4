// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Attention reads where the projections wrote and writes as its reader wants it. What does not cover a tensor exactly once stays a copy of its part.

module {
  // Packed rows, put in order by five dimensions, as PyTorch's multi-head attention exports.
  // CHECK-LABEL: func.func @packed
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg0, %arg0 {k_view = #train.view<[2, 4, 3, 8] from 32 by [96, 8, 192]>, q_view = #train.view<[2, 4, 3, 8] from 0 by [96, 8, 192]>, scale = 5.000000e-01 : f32, v_view = #train.view<[2, 4, 3, 8] from 64 by [96, 8, 192]>, y_order = array<i64: 2, 0, 1, 3>} : (tensor<3x2x96xf32>, tensor<3x2x96xf32>, tensor<3x2x96xf32>) -> (tensor<3x2x4x8xf32>, tensor<2x4x3xf32>)
  // CHECK-NEXT: return %[[Y]]
  func.func @packed(%x: tensor<3x2x96xf32>) -> tensor<3x2x4x8xf32> {
    %five = train.reshape %x : (tensor<3x2x96xf32>) -> tensor<1x3x2x3x32xf32>
    %t = train.transpose %five {permutation = array<i64: 3, 1, 2, 0, 4>} : (tensor<1x3x2x3x32xf32>) -> tensor<3x3x2x1x32xf32>
    %all = train.reshape %t : (tensor<3x3x2x1x32xf32>) -> tensor<3x3x2x32xf32>
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
    %r = train.transpose %y {permutation = array<i64: 2, 0, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<3x2x4x8xf32>
    return %r : tensor<3x2x4x8xf32>
  }

  // Each of a projection of its own.
  // CHECK-LABEL: func.func @apart
  // CHECK-NEXT: train.attention %arg0, %arg1, %arg2 {k_view = #train.view<[2, 4, 5, 8] from 0 by [160, 8, 32]>, q_view = #train.view<[2, 4, 3, 8] from 0 by [96, 8, 32]>, scale = 1.000000e+00 : f32, v_view = #train.view<[2, 4, 5, 8] from 0 by [160, 8, 32]>, y_order = array<i64: 0, 2, 1, 3>}
  // CHECK-NEXT: train.reshape
  func.func @apart(%x: tensor<2x3x32xf32>, %y: tensor<2x5x32xf32>, %z: tensor<10x32xf32>) -> tensor<6x32xf32> {
    %q0 = train.reshape %x : (tensor<2x3x32xf32>) -> tensor<2x3x4x8xf32>
    %k0 = train.reshape %y : (tensor<2x5x32xf32>) -> tensor<2x5x4x8xf32>
    %v0 = train.reshape %z : (tensor<10x32xf32>) -> tensor<2x5x4x8xf32>
    %q = train.transpose %q0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
    %k = train.transpose %k0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
    %v = train.transpose %v0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
    %o, %sums = train.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
    %t = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<2x3x4x8xf32>
    %r = train.reshape %t : (tensor<2x3x4x8xf32>) -> tensor<6x32xf32>
    return %r : tensor<6x32xf32>
  }

  // Queries of one tensor, keys and values of another one, whose gradient is one, too.
  // CHECK-LABEL: func.func @crossed
  // CHECK-NEXT: train.attention %arg0, %arg1, %arg1 {k_view = #train.view<[2, 5, 8] from 0 by [80, 16]>, scale = 1.000000e+00 : f32, v_view = #train.view<[2, 5, 8] from 8 by [80, 16]>} : (tensor<2x3x8xf32>, tensor<2x5x16xf32>, tensor<2x5x16xf32>)
  func.func @crossed(%q: tensor<2x3x8xf32>, %kv: tensor<2x5x16xf32>) -> tensor<2x3x8xf32> {
    %k = train.slice %kv {axis = 2 : i64, start = 0 : i64, length = 8 : i64} : (tensor<2x5x16xf32>) -> tensor<2x5x8xf32>
    %v = train.slice %kv {axis = 2 : i64, start = 8 : i64, length = 8 : i64} : (tensor<2x5x16xf32>) -> tensor<2x5x8xf32>
    %o, %sums = train.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)
    return %o : tensor<2x3x8xf32>
  }

  // A part that nobody reads has a gradient, too: the parts are copied, but not put in order. Reshapes alone are no views.
  // CHECK-LABEL: func.func @partly
  // CHECK: %[[K:.*]] = train.slice %arg1
  // CHECK: %[[V:.*]] = train.slice %arg1
  // CHECK: train.attention %{{.*}}, %[[K]], %[[V]] {k_view = #train.view<[2, 1, 5, 8] from 0 by [8, 80, 16]>, scale = 1.000000e+00 : f32, v_view = #train.view<[2, 1, 5, 8] from 0 by [8, 80, 16]>} : (tensor<2x1x3x8xf32>, tensor<5x2x8xf32>, tensor<5x2x8xf32>)
  func.func @partly(%x: tensor<6x8xf32>, %kv: tensor<5x2x24xf32>) -> tensor<2x1x3x8xf32> {
    %q = train.reshape %x : (tensor<6x8xf32>) -> tensor<2x1x3x8xf32>
    %k0 = train.slice %kv {axis = 2 : i64, start = 0 : i64, length = 8 : i64} : (tensor<5x2x24xf32>) -> tensor<5x2x8xf32>
    %v0 = train.slice %kv {axis = 2 : i64, start = 8 : i64, length = 8 : i64} : (tensor<5x2x24xf32>) -> tensor<5x2x8xf32>
    %k1 = train.transpose %k0 {permutation = array<i64: 1, 0, 2>} : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
    %v1 = train.transpose %v0 {permutation = array<i64: 1, 0, 2>} : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
    %k = train.reshape %k1 : (tensor<2x5x8xf32>) -> tensor<2x1x5x8xf32>
    %v = train.reshape %v1 : (tensor<2x5x8xf32>) -> tensor<2x1x5x8xf32>
    %o, %sums = train.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<2x1x3x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x3x8xf32>, tensor<2x1x3xf32>)
    return %o : tensor<2x1x3x8xf32>
  }

  // Three readers of one tensor, each of all of it, have a gradient each. Columns that are no neighbours stay to be turned.
  // CHECK-LABEL: func.func @itself
  // CHECK: %[[V:.*]] = train.transpose
  // CHECK: train.attention %arg0, %arg0, %[[V]] {k_view = #train.view<[2, 3, 3] from 0 by [3, 6]>, q_view = #train.view<[2, 3, 3] from 0 by [3, 6]>, scale = 1.000000e+00 : f32}
  func.func @itself(%x: tensor<3x2x3xf32>) -> tensor<2x3x3xf32> {
    %q = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<3x2x3xf32>) -> tensor<2x3x3xf32>
    %v = train.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<3x2x3xf32>) -> tensor<2x3x3xf32>
    %o, %sums = train.attention %q, %q, %v {scale = 1.0 : f32} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xf32>)
    return %o : tensor<2x3x3xf32>
  }
}
