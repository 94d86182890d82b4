// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// What is something else, or what somebody else reads in the middle of it, stays as it is.
// CHECK-NOT: train.gelu

module {
  train.variable @one role(constant) init(file) : tensor<f32> {value = dense<1.0> : tensor<f32>}
  train.variable @learned role(parameter) init(file) : tensor<f32> {value = dense<1.0> : tensor<f32>}

  // CHECK-LABEL: func.func @other_slope
  // CHECK: train.erf
  func.func @other_slope(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %b = train.erf %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %x, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // CHECK-LABEL: func.func @another_factor
  // CHECK: train.erf
  func.func @another_factor(%x: tensor<8x4xf32>, %z: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @one : tensor<f32>
    %a = train.scale %x {factor = 0.707106769 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %z, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // CHECK-LABEL: func.func @learned_summand
  // CHECK: train.erf
  func.func @learned_summand(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %one = train.read @learned : tensor<f32>
    %a = train.scale %x {factor = 0.707106769 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %x, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }

  // Other dimensions than the last two, and rows of a left factor.
  // CHECK-LABEL: func.func @other_transposes
  // CHECK-COUNT-2: train.transpose
  func.func @other_transposes(%x: tensor<2x2x2xf32>, %w: tensor<2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
    %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
    %y = train.matmul %w, %t : (tensor<2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
    %u = train.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
    %z = train.matmul %u, %w : (tensor<2x2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
    return %y, %z : tensor<2x2x2xf32>, tensor<2x2x2xf32>
  }

  // CHECK-LABEL: func.func @read_twice
  // CHECK: train.erf
  func.func @read_twice(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %one = train.read @one : tensor<f32>
    %a = train.scale %x {factor = 0.707106769 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = train.erf %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = train.add %b, %one : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %d = train.mul %x, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %y = train.scale %d {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y, %c : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
