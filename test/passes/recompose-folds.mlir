// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Ops that move elements to where they were fold away, with what nobody reads any longer; those that change something stay.

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return %arg0
func.func @nothing(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %a = train.slice %x {axis = 1 : i64, start = 0 : i64, length = 3 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %b = train.reshape %a : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %c = train.reshape %b : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %d = train.broadcast_to %c {factor = 1.0 : f32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %e = train.transpose %d {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %y = train.transpose %e {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @one
// CHECK-NEXT: %[[A:.*]] = train.transpose %arg0 {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
// CHECK-NEXT: %[[B:.*]] = train.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<24xf32>
// CHECK-NEXT: %[[C:.*]] = train.broadcast_to %arg0 {factor = 2.0{{.*}}}
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]]
func.func @one(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<24xf32>, tensor<2x3x4xf32>) {
  %t = train.transpose %x {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %a = train.transpose %t {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x2xf32>) -> tensor<3x4x2xf32>
  %r = train.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %b = train.reshape %r : (tensor<6x4xf32>) -> tensor<24xf32>
  %c = train.broadcast_to %x {factor = 2.0 : f32} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %a, %b, %c : tensor<3x4x2xf32>, tensor<24xf32>, tensor<2x3x4xf32>
}

// A square matrix that is turned is another one.
// CHECK-LABEL: func.func @turned
// CHECK-NEXT: %[[Y:.*]] = train.transpose
// CHECK-NEXT: return %[[Y]]
func.func @turned(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %y = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// CHECK-LABEL: func.func @joined
// CHECK-NEXT: %[[J:.*]] = train.concat
// CHECK-NEXT: %[[S:.*]] = train.slice %[[J]] {{.*}}start = 1
// CHECK-NEXT: return %arg1, %[[S]]
func.func @joined(%x: tensor<2x3xf32>, %z: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %j = train.concat %x, %z {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %p = train.slice %j {axis = 1 : i64, start = 3 : i64, length = 4 : i64} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  %s = train.slice %j {axis = 1 : i64, start = 1 : i64, length = 4 : i64} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  return %p, %s : tensor<2x4xf32>, tensor<2x4xf32>
}
