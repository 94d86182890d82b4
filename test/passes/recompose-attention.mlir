// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Attention as exports write it: PyTorch's legacy exporter (half of the scale on q, half on transposed keys, masks that are added), its present
// one (keys transposed in rank 3, a guard of rows that see no key), models that write it out (a scale behind the product, numbers put
// in place of scores, dropout). What does not fit stays as it is.

// CHECK: module
// CHECK-NOT: train.variable @triangle
// CHECK-NOT: train.variable @above
module {
  train.variable @zero role(constant) init(file) : tensor<f32> {value = dense<0.0> : tensor<f32>}
  train.variable @least role(constant) init(file) : tensor<f32> {value = dense<0xFF800000> : tensor<f32>}
  train.variable @triangle role(constant) init(file) : tensor<3x3xf32> {value = dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>}
  train.variable @above role(constant) init(file) : tensor<1x1x3x3xf32> {value = dense<[[[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>}
  train.variable @bias role(parameter) init(file) : tensor<3x3xf32>

  // CHECK-LABEL: func.func @legacy
  // CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x4x3x5xf32>)
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[K]], %[[V]] {causal = true, k_view = #train.view<[2, 4, 3, 8] from 0 by [96, 8, 32]>, scale = 2.500000e-01 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @legacy(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32> {
    %kt = train.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x8x3xf32>
    %qs = train.scale %q {factor = 5.0e-1 : f32} : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
    %ks = train.scale %kt {factor = 5.0e-1 : f32} : (tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
    %s = train.matmul %qs, %ks : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
    %m = train.read @triangle : tensor<3x3xf32>
    %r = train.reshape %m : (tensor<3x3xf32>) -> tensor<1x1x3x3xf32>
    %a = train.add %s, %r : (tensor<2x4x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<2x4x3x3xf32>
    %p = train.softmax %a {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %y = train.matmul %p, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    return %y : tensor<2x4x3x5xf32>
  }

  // The mask is data: it is added.
  // CHECK-LABEL: func.func @dynamo
  // CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x4x3x8xf32>, %[[M:.*]]: tensor<2x1x1x3xf32>)
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[K]], %[[K]], %[[M]] {scale = 1.000000e+00 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @dynamo(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %m: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf32> {
    %zero = train.read @zero : tensor<f32>
    %kr = train.reshape %k : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %kt = train.transpose %kr {permutation = array<i64: 0, 2, 1>} : (tensor<8x3x8xf32>) -> tensor<8x8x3xf32>
    %kb = train.reshape %kt : (tensor<8x8x3xf32>) -> tensor<2x4x8x3xf32>
    %s = train.matmul %q, %kb : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
    %a = train.add %m, %s : (tensor<2x1x1x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %p = train.softmax %a {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %e = train.compare %p, %p {predicate = 0 : i32} : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %n = train.compare %e, %zero {predicate = 0 : i32} : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
    %g = train.select %n, %zero, %p : (tensor<2x4x3x3xf32>, tensor<f32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %y = train.matmul %g, %k : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %y : tensor<2x4x3x8xf32>
  }

  // CHECK-LABEL: func.func @written_out
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg1, %arg1 {causal = true, key = 7 : i64, ratio = 1.000000e-01 : f32, scale = 1.250000e-01 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @written_out(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %s = train.matmul %q, %k {transpose_b = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
    %f = train.scale %s {factor = 1.25e-1 : f32} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %above = train.read @above : tensor<1x1x3x3xf32>
    %least = train.read @least : tensor<f32>
    %a = train.select %above, %least, %f : (tensor<1x1x3x3xf32>, tensor<f32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %p = train.softmax %a {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %d = train.dropout %p {ratio = 1.0e-1 : f32, key = 7 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %y = train.matmul %d, %k : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %y : tensor<2x4x3x8xf32>
  }

  // A condition that is data: what takes the place of scores is added.
  // CHECK-LABEL: func.func @masked_fill
  // CHECK: %[[LEAST:.*]] = train.read @least
  // CHECK: %[[ZERO:.*]] = train.compare %[[LEAST]], %[[LEAST]] {predicate = 1 : i32}
  // CHECK: %[[M:.*]] = train.select %arg2, %[[ZERO]], %[[LEAST]] : (tensor<2x1x1x3xf32>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x3xf32>
  // CHECK: train.attention %arg0, %arg1, %arg1, %[[M]] {scale = 1.000000e+00 : f32}
  func.func @masked_fill(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %m: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf32> {
    %s = train.matmul %q, %k {transpose_b = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
    %least = train.read @least : tensor<f32>
    %a = train.select %m, %s, %least : (tensor<2x1x1x3xf32>, tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
    %p = train.softmax %a {axis = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %y = train.matmul %p, %k : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %y : tensor<2x4x3x8xf32>
  }

  // CHECK-LABEL: func.func @trained_mask
  // CHECK-NOT: train.attention
  func.func @trained_mask(%q: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %m = train.read @bias : tensor<3x3xf32>
    %a = train.add %s, %m : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %a {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // Somebody else reads the probabilities, or the scores.
  // CHECK-LABEL: func.func @read_elsewhere
  // CHECK-NOT: train.attention
  func.func @read_elsewhere(%q: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x3xf32>) {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %s {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y, %p : tensor<2x3x8xf32>, tensor<2x3x3xf32>
  }
}
