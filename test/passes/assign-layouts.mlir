// RUN: sluice-opt %s --sluice-assign-layouts | FileCheck %s
// A convolution that ends in a flatten before a matrix product, forward and backward, and every kind of wish.

// The images are read by a channels-last op: batches are brought in that order. Weights stay row-major, the bias has no layout.
// CHECK-LABEL: func.func @wishes
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x3x8x8xf32, #train.layout<nhwc>>, %[[W:[a-z0-9]+]]: tensor<4x3x3x3xf32>
// CHECK: %[[Y:.*]] = train.conv %[[X]], %[[W]] {{.*}} : (tensor<8x3x8x8xf32, #train.layout<nhwc>>, tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32, #train.layout<nhwc>>
// Elementwise regions follow their largest operand; one that broadcasts is brought in its order (for nothing: its image is 1x1).
// CHECK-NEXT: %[[C:.*]] = train.reorder %{{.*}} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[A:.*]] = train.fused(%[[Y]], %[[C]] : tensor<8x4x6x6xf32, #train.layout<nhwc>>, tensor<1x4x1x1xf32, #train.layout<nhwc>>){{.*}}-> (tensor<8x4x6x6xf32, #train.layout<nhwc>>)
// CHECK: %[[P:.*]], %[[I:.*]] = train.max_pool %[[A]] {{.*}} -> (tensor<8x4x3x3xf32, #train.layout<nhwc>>, tensor<8x4x3x3xi8, #train.layout<nhwc>>)
// Flatten and transpose look at the logical order: one reorder serves both.
// CHECK: %[[R:.*]] = train.reorder %[[P]] : (tensor<8x4x3x3xf32, #train.layout<nhwc>>) -> tensor<8x4x3x3xf32>
// CHECK-NEXT: %[[F:.*]] = train.reshape %[[R]] : (tensor<8x4x3x3xf32>) -> tensor<8x36xf32>
// CHECK-NEXT: %[[T:.*]] = train.transpose %[[R]]
// CHECK-NOT: train.reorder
// CHECK: train.matmul %[[F]]
// Backward: the reshaped gradient comes in as row-major and goes back to the pool's order, with the indices as they are.
// CHECK: %[[DR:.*]] = train.reshape %{{.*}} : (tensor<8x36xf32>) -> tensor<8x4x3x3xf32>
// CHECK-NEXT: %[[DP:.*]] = train.reorder %[[DR]]
// CHECK-NEXT: %[[DA:.*]] = train.max_pool_backward %[[DP]], %[[I]]
// CHECK-NEXT: train.conv_backward_weight %[[DA]], %[[X]] {{.*}} -> tensor<4x3x3x3xf32>{{$}}
func.func @wishes(%x: tensor<8x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %c: tensor<1x4x1x1xf32>, %fc: tensor<10x36xf32>) -> tensor<4x3x3x3xf32> {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32>
  %a = train.fused (%y, %c : tensor<8x4x6x6xf32>, tensor<1x4x1x1xf32>) channels [] sums 0 -> (tensor<8x4x6x6xf32>) {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.mulf %s, %t : f32
    train.yield %0 : f32
  }
  %p, %i = train.max_pool %a {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x4x6x6xf32>) -> (tensor<8x4x3x3xf32>, tensor<8x4x3x3xi8>)
  %f = train.reshape %p : (tensor<8x4x3x3xf32>) -> tensor<8x36xf32>
  %t = train.transpose %p {permutation = array<i64: 1, 0, 2, 3>} : (tensor<8x4x3x3xf32>) -> tensor<4x8x3x3xf32>
  %l = train.matmul %f, %fc {transpose_b = true} : (tensor<8x36xf32>, tensor<10x36xf32>) -> tensor<8x10xf32>
  %df = train.matmul %l, %fc : (tensor<8x10xf32>, tensor<10x36xf32>) -> tensor<8x36xf32>
  %dp = train.reshape %df : (tensor<8x36xf32>) -> tensor<8x4x3x3xf32>
  %da = train.max_pool_backward %dp, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x4x3x3xf32>, tensor<8x4x3x3xi8>) -> tensor<8x4x6x6xf32>
  %dw = train.conv_backward_weight %da, %x {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x4x6x6xf32>, tensor<8x3x8x8xf32>) -> tensor<4x3x3x3xf32>
  return %dw : tensor<4x3x3x3xf32>
}

// Channel sums want the channels innermost though their operands come row-major.
// CHECK-LABEL: func.func @sums
// CHECK: %[[D:.*]] = train.reorder
// CHECK-NEXT: train.fused(%[[D]] : tensor<8x4x6x6xf32, #train.layout<nhwc>>) channels [] sums 1 -> (tensor<4xf32>)
func.func @sums(%x: tensor<8x144xf32>) -> tensor<4xf32> {
  %d = train.reshape %x : (tensor<8x144xf32>) -> tensor<8x4x6x6xf32>
  %s = train.fused (%d : tensor<8x4x6x6xf32>) channels [] sums 1 -> (tensor<4xf32>) {
  ^bb0(%e: f32):
    train.yield %e : f32
  }
  return %s : tensor<4xf32>
}

// A loss compares images with a target class by class, so its gradient is row-major and the convolution before it gets a reorder.
// CHECK-LABEL: func.func @dense_loss
// CHECK-SAME: %[[TARGET:[a-z0-9]+]]: tensor<8x3x8x8xf32>, %{{.*}}: tensor<3x3x1x1xf32>
// CHECK: %[[ROWS:.*]] = train.reorder
// CHECK-NEXT: train.mse %[[ROWS]], %[[TARGET]]
// CHECK-NEXT: %[[DL:.*]] = train.loss_backward mse %[[ROWS]], %[[TARGET]] : {{.*}} -> tensor<8x3x8x8xf32>{{$}}
// CHECK-NEXT: %[[BACK:.*]] = train.reorder %[[DL]]
// CHECK-NEXT: train.conv_backward_weight %[[BACK]]
func.func @dense_loss(%x: tensor<8x3x8x8xf32>, %target: tensor<8x3x8x8xf32>, %w: tensor<3x3x1x1xf32>) -> tensor<3x3x1x1xf32> {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x8x8xf32>, tensor<3x3x1x1xf32>) -> tensor<8x3x8x8xf32>
  %loss = train.mse %y, %target : (tensor<8x3x8x8xf32>, tensor<8x3x8x8xf32>) -> tensor<f32>
  %dy = train.loss_backward mse %y, %target : (tensor<8x3x8x8xf32>, tensor<8x3x8x8xf32>) -> tensor<8x3x8x8xf32>
  %dw = train.conv_backward_weight %dy, %x {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x8x8xf32>, tensor<8x3x8x8xf32>) -> tensor<3x3x1x1xf32>
  return %dw : tensor<3x3x1x1xf32>
}

// Draws go by the physical order: a region with one is channels-last even between reshapes, as it is between convolutions.
// CHECK-LABEL: func.func @draws
// CHECK: %[[R:.*]] = train.reorder %{{.*}} -> tensor<4x6x4x4xf32, #train.layout<nhwc>>
// CHECK-NEXT: train.fused(%[[R]] : tensor<4x6x4x4xf32, #train.layout<nhwc>>)
func.func @draws(%x: tensor<4x96xf32>) -> tensor<4x96xf32> {
  %r = train.reshape %x : (tensor<4x96xf32>) -> tensor<4x6x4x4xf32>
  %y = train.fused (%r : tensor<4x6x4x4xf32>) channels [] sums 0 -> (tensor<4x6x4x4xf32>) {
  ^bb0(%s: f32):
    %u = train.uniform {key = 7 : i64} : () -> f32
    %0 = arith.mulf %s, %u : f32
    train.yield %0 : f32
  }
  %z = train.reshape %y : (tensor<4x6x4x4xf32>) -> tensor<4x96xf32>
  return %z : tensor<4x96xf32>
}

// To [N,H,W,C] and back: the bytes of NHWC images as they are. A transpose that moves them is row-major.
// CHECK-LABEL: func.func @views
// CHECK: %[[Y:.*]] = train.conv {{.*}} -> tensor<8x4x6x6xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[T:.*]] = train.transpose %[[Y]] {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x4x6x6xf32, #train.layout<nhwc>>) -> tensor<8x6x6x4xf32>
// CHECK-NEXT: %[[B:.*]] = train.transpose %[[T]] {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x6x6x4xf32>) -> tensor<8x4x6x6xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[R:.*]] = train.reorder %[[B]] : {{.*}} -> tensor<8x4x6x6xf32>
// CHECK-NEXT: %[[C:.*]] = train.transpose %[[R]] {permutation = array<i64: 0, 1, 3, 2>} : (tensor<8x4x6x6xf32>) -> tensor<8x4x6x6xf32>
func.func @views(%x: tensor<8x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32> {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32>
  %t = train.transpose %y {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x4x6x6xf32>) -> tensor<8x6x6x4xf32>
  %b = train.transpose %t {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x6x6x4xf32>) -> tensor<8x4x6x6xf32>
  %c = train.transpose %b {permutation = array<i64: 0, 1, 3, 2>} : (tensor<8x4x6x6xf32>) -> tensor<8x4x6x6xf32>
  return %c : tensor<8x4x6x6xf32>
}

// Lines, as a convolution over images of height 1 reads them: reshapes are views, what lies between them stays channels last.
// CHECK-LABEL: func.func @lines
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x3x16xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[I:.*]] = train.reshape %[[X]] : (tensor<8x3x16xf32, #train.layout<nhwc>>) -> tensor<8x3x1x16xf32, #train.layout<nhwc>>
// CHECK-NEXT: train.conv %[[I]]
// CHECK-NEXT: %[[L:.*]] = train.reshape {{.*}} -> tensor<8x4x16xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[F:.*]] = train.fused(%[[L]] : {{.*}} -> (tensor<8x4x16xf32, #train.layout<nhwc>>)
// CHECK: %[[J:.*]] = train.reshape %[[F]] : {{.*}} -> tensor<8x4x1x16xf32, #train.layout<nhwc>>
// CHECK-NEXT: train.conv %[[J]]
// What does not add channels to lines, but looks at their order, reads them row by row.
// CHECK-NEXT: %[[R:.*]] = train.reorder %[[F]] : (tensor<8x4x16xf32, #train.layout<nhwc>>) -> tensor<8x4x16xf32>
// CHECK-NEXT: train.fused(%[[R]],
func.func @lines(%x: tensor<8x3x16xf32>, %w: tensor<4x3x1x1xf32>, %v: tensor<4x4x1x1xf32>, %m: tensor<4x16xf32>) -> (tensor<8x64xf32>, tensor<8x4x16xf32>) {
  %i = train.reshape %x : (tensor<8x3x16xf32>) -> tensor<8x3x1x16xf32>
  %y = train.conv %i, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x3x1x16xf32>, tensor<4x3x1x1xf32>) -> tensor<8x4x1x16xf32>
  %l = train.reshape %y : (tensor<8x4x1x16xf32>) -> tensor<8x4x16xf32>
  %f = train.fused (%l : tensor<8x4x16xf32>) channels [] sums 0 -> (tensor<8x4x16xf32>) {
  ^bb0(%s: f32):
    %0 = arith.mulf %s, %s : f32
    train.yield %0 : f32
  }
  %j = train.reshape %f : (tensor<8x4x16xf32>) -> tensor<8x4x1x16xf32>
  %z = train.conv %j, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x4x1x16xf32>, tensor<4x4x1x1xf32>) -> tensor<8x4x1x16xf32>
  %g = train.fused (%f, %m : tensor<8x4x16xf32>, tensor<4x16xf32>) channels [] sums 0 -> (tensor<8x4x16xf32>) {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.mulf %s, %t : f32
    train.yield %0 : f32
  }
  %o = train.reshape %z : (tensor<8x4x1x16xf32>) -> tensor<8x64xf32>
  return %o, %g : tensor<8x64xf32>, tensor<8x4x16xf32>
}

// Volumes; a pool over one dimension less is a view of them. A sequence of tokens is no line, nor is its transpose.
// CHECK-LABEL: func.func @volumes
// CHECK: %[[V:.*]] = train.conv {{.*}} -> tensor<2x4x6x6x6xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[S:.*]] = train.reshape %[[V]] : {{.*}} -> tensor<2x4x6x36xf32, #train.layout<nhwc>>
// CHECK-NEXT: %[[P:.*]] = train.average_pool %[[S]]
// CHECK-NEXT: %[[T:.*]] = train.transpose %{{.*}} -> tensor<2x8x5xf32>{{$}}
func.func @volumes(%x: tensor<2x3x8x8x8xf32>, %w: tensor<4x3x3x3x3xf32>, %q: tensor<2x5x8xf32>) -> (tensor<2x864xf32>, tensor<2x8x5xf32>) {
  %y = train.conv %x, %w {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64} : (tensor<2x3x8x8x8xf32>, tensor<4x3x3x3x3xf32>) -> tensor<2x4x6x6x6xf32>
  %s = train.reshape %y : (tensor<2x4x6x6x6xf32>) -> tensor<2x4x6x36xf32>
  %p = train.average_pool %s {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x4x6x36xf32>) -> tensor<2x4x6x36xf32>
  %t = train.transpose %q {permutation = array<i64: 0, 2, 1>} : (tensor<2x5x8xf32>) -> tensor<2x8x5xf32>
  %o = train.reshape %p : (tensor<2x4x6x36xf32>) -> tensor<2x864xf32>
  return %o, %t : tensor<2x864xf32>, tensor<2x8x5xf32>
}

// Draws in lines and volumes go by rows, forward and backward: those have no order of their own.
// CHECK-LABEL: func.func @draws_of_lines
// CHECK: train.fused(%{{.*}} : tensor<4x6x16xf32>) channels
func.func @draws_of_lines(%x: tensor<4x6x16xf32>, %w: tensor<6x6x1x1xf32>) -> tensor<4x6x16xf32> {
  %i = train.reshape %x : (tensor<4x6x16xf32>) -> tensor<4x6x1x16xf32>
  %z = train.conv %i, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x6x1x16xf32>, tensor<6x6x1x1xf32>) -> tensor<4x6x1x16xf32>
  %l = train.reshape %z : (tensor<4x6x1x16xf32>) -> tensor<4x6x16xf32>
  %y = train.fused (%l : tensor<4x6x16xf32>) channels [] sums 0 -> (tensor<4x6x16xf32>) {
  ^bb0(%s: f32):
    %u = train.uniform {key = 7 : i64} : () -> f32
    %0 = arith.mulf %s, %u : f32
    train.yield %0 : f32
  }
  return %y : tensor<4x6x16xf32>
}
