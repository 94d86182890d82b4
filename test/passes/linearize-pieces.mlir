// RUN: sluice-opt %s --sluice-linearize | FileCheck %s
// Slabs that lie in one piece and begin where a slot could are no copies, unless that keeps bytes that a copy would let go.

module {
  train.variable @w role(parameter) init(kaiming) : tensor<128x8xf32>

  // What outlives the step keeps its bytes anyway: variables, and batches.
  // CHECK-LABEL: func.func @step
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 64 : i64, piece, start = 64 : i64, train.forward = 0 : i64
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 8 : i64, piece, start = 8 : i64, train.forward = 1 : i64
  // Slices that are all that is read of %a; a region does not work in the bytes of a piece.
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 8 : i64, piece, start = 0 : i64, train.forward = 3 : i64
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 8 : i64, piece, start = 8 : i64, train.forward = 4 : i64
  // CHECK: train.fused(
  // CHECK-NOT: train.in_place
  // CHECK: train.concat
  // Half of %c lives longer than %c: a copy. The other half ends with it.
  // CHECK: train.slice %[[C:.*]] {axis = 0 : i64, length = 8 : i64, start = 0 : i64, train.forward = 7 : i64
  // CHECK: train.slice %[[C]] {axis = 0 : i64, length = 8 : i64, piece, start = 8 : i64, train.forward = 8 : i64
  // Columns lie apart, and rows from the second on begin where no slot does.
  // CHECK: train.slice %{{.*}} {axis = 1 : i64, length = 4 : i64, start = 0 : i64, train.forward = 10 : i64
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 4 : i64, start = 1 : i64, train.forward = 11 : i64
  func.func @step(%x: tensor<16x8xf32>, %y: tensor<16x64xf32>) -> tensor<f32> {
    %w = train.read @w : tensor<128x8xf32>
    %half = train.slice %w {axis = 0 : i64, length = 64 : i64, start = 64 : i64, train.forward = 0 : i64} : (tensor<128x8xf32>) -> tensor<64x8xf32>
    %rows = train.slice %x {axis = 0 : i64, length = 8 : i64, start = 8 : i64, train.forward = 1 : i64} : (tensor<16x8xf32>) -> tensor<8x8xf32>
    %a = train.matmul %x, %half {train.forward = 2 : i64, transpose_b = true} : (tensor<16x8xf32>, tensor<64x8xf32>) -> tensor<16x64xf32>
    %a0 = train.slice %a {axis = 0 : i64, length = 8 : i64, start = 0 : i64, train.forward = 3 : i64} : (tensor<16x64xf32>) -> tensor<8x64xf32>
    %a1 = train.slice %a {axis = 0 : i64, length = 8 : i64, start = 8 : i64, train.forward = 4 : i64} : (tensor<16x64xf32>) -> tensor<8x64xf32>
    %b = train.fused (%a0 : tensor<8x64xf32>) channels [] sums 0 -> (tensor<8x64xf32>) attributes {train.forward = 5 : i64} {
    ^bb0(%s: f32):
      train.yield %s : f32
    }
    %c = train.concat %b, %a1 {axis = 0 : i64, train.forward = 6 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
    %c0 = train.slice %c {axis = 0 : i64, length = 8 : i64, start = 0 : i64, train.forward = 7 : i64} : (tensor<16x64xf32>) -> tensor<8x64xf32>
    %c1 = train.slice %c {axis = 0 : i64, length = 8 : i64, start = 8 : i64, train.forward = 8 : i64} : (tensor<16x64xf32>) -> tensor<8x64xf32>
    %m = train.mul %c1, %c1 {train.forward = 9 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %n = train.mul %c, %c {train.forward = 9 : i64} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %columns = train.slice %n {axis = 1 : i64, length = 4 : i64, start = 0 : i64, train.forward = 10 : i64} : (tensor<16x64xf32>) -> tensor<16x4xf32>
    %odd = train.slice %columns {axis = 0 : i64, length = 4 : i64, start = 1 : i64, train.forward = 11 : i64} : (tensor<16x4xf32>) -> tensor<4x4xf32>
    %p = train.mul %c0, %m {train.forward = 12 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %z = train.concat %p, %p {axis = 0 : i64, train.forward = 13 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
    %loss = train.mse %z, %y {train.forward = 14 : i64} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }

  // What is returned has a place of its own, and so have views of it. Images with channels last are one piece along the batch only.
  // CHECK-LABEL: func.func @evaluate
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 8 : i64, start = 0 : i64}
  // CHECK: train.slice %{{.*}} {axis = 1 : i64, length = 8 : i64, start = 0 : i64}
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 1 : i64, piece, start = 1 : i64}
  func.func @evaluate(%x: tensor<16x8xf32>, %i: tensor<2x16x4x4xf32, #train.layout<nhwc>>) -> (tensor<64xf32>, tensor<2x8x4x4xf32, #train.layout<nhwc>>, tensor<1x16x4x4xf32, #train.layout<nhwc>>) {
    %s = train.slice %x {axis = 0 : i64, length = 8 : i64, start = 0 : i64} : (tensor<16x8xf32>) -> tensor<8x8xf32>
    %v = train.reshape %s : (tensor<8x8xf32>) -> tensor<64xf32>
    %j = train.slice %i {axis = 1 : i64, length = 8 : i64, start = 0 : i64} : (tensor<2x16x4x4xf32, #train.layout<nhwc>>) -> tensor<2x8x4x4xf32, #train.layout<nhwc>>
    %k = train.slice %i {axis = 0 : i64, length = 1 : i64, start = 1 : i64} : (tensor<2x16x4x4xf32, #train.layout<nhwc>>) -> tensor<1x16x4x4xf32, #train.layout<nhwc>>
    %l = train.mul %k, %k : (tensor<1x16x4x4xf32, #train.layout<nhwc>>, tensor<1x16x4x4xf32, #train.layout<nhwc>>) -> tensor<1x16x4x4xf32, #train.layout<nhwc>>
    return %v, %j, %l : tensor<64xf32>, tensor<2x8x4x4xf32, #train.layout<nhwc>>, tensor<1x16x4x4xf32, #train.layout<nhwc>>
  }

  // What is read of a root may lack an eighth of it at the end, padding, but no more, and nothing in front.
  // CHECK-LABEL: func.func @padded
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 56 : i64, piece, start = 0 : i64}
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 48 : i64, start = 0 : i64}
  // CHECK: train.slice %{{.*}} {axis = 0 : i64, length = 56 : i64, start = 8 : i64}
  func.func @padded(%x: tensor<64x8xf32>) {
    %a = train.mul %x, %x : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    %b = train.add %x, %x : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    %c = train.sub %x, %x : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    %p = train.slice %a {axis = 0 : i64, length = 56 : i64, start = 0 : i64} : (tensor<64x8xf32>) -> tensor<56x8xf32>
    %q = train.slice %b {axis = 0 : i64, length = 48 : i64, start = 0 : i64} : (tensor<64x8xf32>) -> tensor<48x8xf32>
    %r = train.slice %c {axis = 0 : i64, length = 56 : i64, start = 8 : i64} : (tensor<64x8xf32>) -> tensor<56x8xf32>
    %pp = train.mul %p, %p : (tensor<56x8xf32>, tensor<56x8xf32>) -> tensor<56x8xf32>
    %qq = train.mul %q, %q : (tensor<48x8xf32>, tensor<48x8xf32>) -> tensor<48x8xf32>
    %rr = train.mul %r, %r : (tensor<56x8xf32>, tensor<56x8xf32>) -> tensor<56x8xf32>
    return
  }
}
