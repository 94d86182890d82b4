// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Layer normalization as exports before opset 17 write it; what somebody else reads, and sums over other dimensions, stay.

module {
  train.variable @epsilon role(constant) init(file) : tensor<f32> {value = dense<1.0e-5> : tensor<f32>}

  // CHECK-LABEL: func.func @legacy
  // CHECK-NEXT: %[[ROWS:.*]] = train.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK-NEXT: %[[Y:.*]], %{{.*}}, %{{.*}} = train.layer_norm %[[ROWS]], %arg1, %arg2 {epsilon = 9.99999974E-6 : f32}
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[Y]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  // CHECK-NEXT: return %[[R]]
  func.func @legacy(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
    %d = train.sub %x, %m : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
    %q = train.mul %d, %d : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
    %r = train.sqrt %a : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %n = train.div %d, %r : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
    %s = train.mul %n, %w : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
    %y = train.add %b, %s : (tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %y : tensor<2x3x4xf32>
  }

  // rsqrt, and the scale last.
  // CHECK-LABEL: func.func @by_reciprocal
  // CHECK-NEXT: %[[Y:.*]], %{{.*}}, %{{.*}} = train.layer_norm %arg0, %arg1, %arg2 {epsilon = 9.99999974E-6 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @by_reciprocal(%x: tensor<6x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<6x4xf32> {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %d = train.sub %x, %m : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %q = train.mul %d, %d : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
    %r = train.sqrt %a : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %i = train.reciprocal %r : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %n = train.mul %d, %i : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %s = train.mul %w, %n : (tensor<4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %y = train.add %s, %b : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    return %y : tensor<6x4xf32>
  }

  // The scale before the division, and a mean that is written twice.
  // CHECK-LABEL: func.func @scale_first
  // CHECK-NEXT: %[[Y:.*]], %{{.*}}, %{{.*}} = train.layer_norm %arg0, %arg1, %arg2 {epsilon = 9.99999974E-6 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @scale_first(%x: tensor<6x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<6x4xf32> {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %d = train.sub %x, %m : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %q = train.mul %d, %d : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
    %r = train.sqrt %a : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %n0 = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %c = train.sub %x, %n0 : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %s = train.mul %w, %c : (tensor<4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %n = train.div %s, %r : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %y = train.add %n, %b : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    return %y : tensor<6x4xf32>
  }

  // The scale upon 1 / sqrt.
  // CHECK-LABEL: func.func @scale_of_the_root
  // CHECK-NEXT: %[[Y:.*]], %{{.*}}, %{{.*}} = train.layer_norm %arg0, %arg1, %arg2 {epsilon = 9.99999974E-6 : f32}
  // CHECK-NEXT: return %[[Y]]
  func.func @scale_of_the_root(%x: tensor<6x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<6x4xf32> {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %d = train.sub %x, %m : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %q = train.mul %d, %d : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
    %r = train.sqrt %a : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %i = train.reciprocal %r : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %s = train.mul %i, %w : (tensor<6x1xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    %n = train.mul %s, %d : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %y = train.add %n, %b : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    return %y : tensor<6x4xf32>
  }

  // CHECK-LABEL: func.func @read_elsewhere
  // CHECK-NOT: train.layer_norm
  func.func @read_elsewhere(%x: tensor<6x4xf32>, %w: tensor<4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %d = train.sub %x, %m : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %q = train.mul %d, %d : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<6x4xf32>) -> tensor<6x1xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
    %r = train.sqrt %a : (tensor<6x1xf32>) -> tensor<6x1xf32>
    %n = train.div %d, %r : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %s = train.mul %n, %w : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    %y = train.add %s, %w : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    return %y, %d : tensor<6x4xf32>, tensor<6x4xf32>
  }

  // CHECK-LABEL: func.func @over_rows
  // CHECK-NOT: train.layer_norm
  func.func @over_rows(%x: tensor<4x4xf32>, %w: tensor<4xf32>) -> tensor<4x4xf32> {
    %m = train.sum_to %x {factor = 2.5e-1 : f32} : (tensor<4x4xf32>) -> tensor<1x4xf32>
    %d = train.sub %x, %m : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
    %q = train.mul %d, %d : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %v = train.sum_to %q {factor = 2.5e-1 : f32} : (tensor<4x4xf32>) -> tensor<1x4xf32>
    %e = train.read @epsilon : tensor<f32>
    %a = train.add %v, %e : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %r = train.sqrt %a : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %n = train.div %d, %r : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
    %s = train.mul %n, %w : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %y = train.add %s, %w : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}
