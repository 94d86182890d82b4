// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// What exports write for gelu: the legacy exporter of PyTorch (x * (1 + erf(x/sqrt2)) * 0.5), its present one (x * (0.5 * (1 + erf))), and
// the reciprocal as a factor with half of x. The constants go with their last reader; others stay.

// CHECK: module
// CHECK-NOT: train.variable @root
// CHECK: train.variable @unread
module {
  train.variable @root role(constant) init(file) : tensor<f32> {value = dense<1.41421354> : tensor<f32>}
  train.variable @one role(constant) init(file) : tensor<f32> {value = dense<1.0> : tensor<f32>}
  train.variable @half role(constant) init(file) : tensor<f32> {value = dense<0.5> : tensor<f32>}
  train.variable @unread role(parameter) init(file) : tensor<f32>

  // CHECK-LABEL: func.func @legacy
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: return %[[Y]]
  func.func @legacy(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %root = train.read @root : tensor<f32>
    %one = train.read @one : tensor<f32>
    %a = train.div %x, %root : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %x, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // CHECK-LABEL: func.func @dynamo
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0
  // CHECK-NEXT: return %[[Y]]
  func.func @dynamo(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %root = train.read @root : tensor<f32>
    %one = train.read @one : tensor<f32>
    %half = train.read @half : tensor<f32>
    %a = train.div %x, %root : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %one, %b : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %d = train.mul %c, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %y = train.mul %x, %d : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // CHECK-LABEL: func.func @by_tanh
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0 {tanh = true}
  // CHECK-NEXT: return %[[Y]]
  func.func @by_tanh(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %h = train.scale %x {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %q = train.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %k = train.mul %q, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = train.scale %k {factor = 4.471500e-02 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.add %x, %s : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %u = train.scale %a {factor = 0.797884583 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = train.tanh %u : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %one, %t : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.mul %h, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // A linear layer as PyTorch exports it, and scores of attention.
  // CHECK-LABEL: func.func @transposed
  // CHECK-NEXT: %[[Y:.*]] = train.matmul %arg0, %arg1 {transpose_b = true} : (tensor<2x8x4xf32>, tensor<5x4xf32>) -> tensor<2x8x5xf32>
  // CHECK-NEXT: %[[Z:.*]] = train.matmul %arg2, %arg0 {transpose_a = true, transpose_b = true} : (tensor<4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  // CHECK-NEXT: return %[[Y]], %[[Z]]
  func.func @transposed(%x: tensor<2x8x4xf32>, %w: tensor<5x4xf32>, %v: tensor<4x8xf32>) -> (tensor<2x8x5xf32>, tensor<2x8x8xf32>) {
    %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
    %y = train.matmul %x, %t : (tensor<2x8x4xf32>, tensor<4x5xf32>) -> tensor<2x8x5xf32>
    %u = train.transpose %v {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %k = train.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
    %z = train.matmul %u, %k : (tensor<8x4xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    return %y, %z : tensor<2x8x5xf32>, tensor<2x8x8xf32>
  }

  // CHECK-LABEL: func.func @half_of_x
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0
  // CHECK-NEXT: return %[[Y]]
  func.func @half_of_x(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %h = train.scale %x {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.scale %x {factor = 0.707106769 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %y = train.mul %h, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // x in front of the polynomial: x * 0.79788 * (1 + 0.044715 * x * x).
  // CHECK-LABEL: func.func @factored
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0 {tanh = true}
  // CHECK-NEXT: return %[[Y]]
  func.func @factored(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %half = train.read @half : tensor<f32>
    %k = train.scale %x {factor = 4.471500e-02 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %q = train.mul %k, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.add %one, %q : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %v = train.scale %x {factor = 0.797884583 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %u = train.mul %v, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = train.tanh %u : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %t, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %h = train.mul %x, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %y = train.mul %h, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // x * (x * x), and the half last.
  // CHECK-LABEL: func.func @cubed_otherwise
  // CHECK-NEXT: %[[Y:.*]] = train.gelu %arg0 {tanh = true}
  // CHECK-NEXT: return %[[Y]]
  func.func @cubed_otherwise(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %half = train.read @half : tensor<f32>
    %q = train.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %k = train.mul %x, %q : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = train.scale %k {factor = 4.471500e-02 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.add %s, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %u = train.scale %a {factor = 0.797884583 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = train.tanh %u : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %t, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %c, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // A different polynomial, or one of another number, stays.
  // CHECK-LABEL: func.func @another_cube
  // CHECK-NOT: train.gelu
  // CHECK: return
  func.func @another_cube(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %q = train.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %k = train.mul %q, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = train.scale %k {factor = 5.0e-02 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.add %s, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %u = train.scale %a {factor = 0.797884583 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = train.tanh %u : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %t, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %c, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // CHECK-LABEL: func.func @squared
  // CHECK-NOT: train.gelu
  // CHECK: return
  func.func @squared(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %half = train.read @half : tensor<f32>
    %q = train.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %s = train.scale %q {factor = 4.471500e-02 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = train.add %s, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %u = train.scale %a {factor = 0.797884583 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %t = train.tanh %u : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %t, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %c, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}
