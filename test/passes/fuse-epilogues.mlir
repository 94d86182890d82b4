// RUN: sluice-opt %s --sluice-fuse-epilogues --split-input-file | FileCheck %s
// A residual block's convolutions of one tap take over the sums of the BatchNorm behind them and, backward, of the one in front of them; what other convolutions
// keep to themselves; f32 is left alone.

module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<4x16x8x8xf32>, %[[W:.*]]: tensor<8x16x1x1xf32>, %[[S:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]], %[[MEAN:.*]], %[[RSTD:.*]] = train.conv_statistics %[[X]], %[[W]] {{{.*}}epsilon = 9.99999974E-6 : f32{{.*}}train.forward = 0 : i64}
// CHECK-NEXT: %[[N:.*]] = train.normalize %[[Y]], %[[MEAN]], %[[RSTD]], %[[S]], %[[S]] {train.forward = 1 : i64}
// CHECK-NEXT: return %[[N]], %[[MEAN]], %[[Y]]
func.func @forward(%x: tensor<4x16x8x8xf32>, %w: tensor<8x16x1x1xf32>, %s: tensor<8xf32>) -> (tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<4x8x8x8xf32>) {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, train.forward = 0 : i64} : (tensor<4x16x8x8xf32>, tensor<8x16x1x1xf32>) -> tensor<4x8x8x8xf32>
  %n, %mean, %rstd = train.batch_norm %y, %s, %s {epsilon = 1.0e-5 : f32, train.forward = 1 : i64} : (tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %n, %mean, %y : tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<4x8x8x8xf32>
}

// The end of a block: the other gradient is added, the masked one goes on to where it came from, too.
// CHECK-LABEL: func.func @block_end
// CHECK-SAME: %[[DY:.*]]: tensor<4x8x8x8xf32>, %[[W:.*]]: tensor<8x16x1x1xf32>, %[[SKIP:.*]]: tensor<4x16x8x8xf32>, %[[Z:.*]]: tensor<4x16x8x8xf32>, %[[X:.*]]: tensor<4x16x8x8xf32>, %[[S:.*]]: tensor<16xf32>
// CHECK-NEXT: %[[DZ:.*]], %[[DS:.*]], %[[DB:.*]] = train.conv_backward_norm %[[DY]], %[[W]], %[[Z]], %[[X]], %[[S]], %[[S]], %[[SKIP]] {{{.*}}train.backward = 3 : i64}
// CHECK-NEXT: %[[DX:.*]] = train.normalize_backward %[[DZ]], %[[X]], %[[S]], %[[S]], %[[S]], %[[DS]], %[[DB]] {count = 256 : i64, train.backward = 1 : i64}
// CHECK-NEXT: return %[[DX]], %[[DS]], %[[DB]], %[[DZ]]
func.func @block_end(%dy: tensor<4x8x8x8xf32>, %w: tensor<8x16x1x1xf32>, %skip: tensor<4x16x8x8xf32>, %z: tensor<4x16x8x8xf32>, %x: tensor<4x16x8x8xf32>, %s: tensor<16xf32>)
    -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4x16x8x8xf32>) {
  %d = train.conv_backward_data %dy, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, train.backward = 3 : i64} : (tensor<4x8x8x8xf32>, tensor<8x16x1x1xf32>) -> tensor<4x16x8x8xf32>
  %a = train.add %skip, %d {train.backward = 3 : i64} : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
  %r = train.relu_backward %a, %z {train.backward = 2 : i64} : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
  %dx, %ds, %db = train.batch_norm_backward %r, %x, %s, %s, %s {train.backward = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  return %dx, %ds, %db, %r : tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4x16x8x8xf32>
}

// Two BatchNorms ended in one sum, whose gradient they share: the first one's sums. The images need no gradient.
// CHECK-LABEL: func.func @two_norms
// CHECK: %[[DZ:.*]], %[[DS:.*]], %{{.*}} = train.conv_backward_norm
// CHECK-NEXT: %{{.*}}, %[[OTHER:.*]], %{{.*}} = train.batch_norm_backward %[[DZ]]
// CHECK-NEXT: return %[[DS]], %[[OTHER]]
func.func @two_norms(%dy: tensor<4x8x8x8xf32>, %w: tensor<8x16x1x1xf32>, %z: tensor<4x16x8x8xf32>, %x: tensor<4x16x8x8xf32>, %s: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %d = train.conv_backward_data %dy, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x8x8x8xf32>, tensor<8x16x1x1xf32>) -> tensor<4x16x8x8xf32>
  %r = train.relu_backward %d, %z : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
  %dx, %ds, %db = train.batch_norm_backward %r, %x, %s, %s, %s : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  %ex, %es, %eb = train.batch_norm_backward %r, %x, %s, %s, %s : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  return %ds, %es : tensor<16xf32>, tensor<16xf32>
}

// Several taps, odd channels, strides backward, and a gradient that somebody else reads.
// CHECK-LABEL: func.func @others
// CHECK-NOT: train.conv_statistics
// CHECK-NOT: train.conv_backward_norm
// CHECK: return
func.func @others(%x: tensor<4x16x8x8xf32>, %w: tensor<16x16x3x3xf32>, %v: tensor<12x16x1x1xf32>, %u: tensor<16x16x1x1xf32>, %s: tensor<16xf32>, %t: tensor<12xf32>, %dy: tensor<4x16x4x4xf32>) -> (tensor<16xf32>, tensor<12xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4x16x8x8xf32>) {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<4x16x8x8xf32>
  %n, %mean, %rstd = train.batch_norm %y, %s, %s {epsilon = 1.0e-5 : f32} : (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  %o = train.conv %n, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<12x16x1x1xf32>) -> tensor<4x12x8x8xf32>
  %p, %mean2, %rstd2 = train.batch_norm %o, %t, %t {epsilon = 1.0e-5 : f32} : (tensor<4x12x8x8xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<4x12x8x8xf32>, tensor<12xf32>, tensor<12xf32>)
  %d = train.conv_backward_data %dy, %u {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x16x4x4xf32>, tensor<16x16x1x1xf32>) -> tensor<4x16x8x8xf32>
  %r = train.relu_backward %d, %x : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
  %dx, %ds, %db = train.batch_norm_backward %r, %x, %s, %s, %s : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  %e = train.conv_backward_data %x, %u {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<4x16x8x8xf32>
  %q = train.relu_backward %e, %x : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>) -> tensor<4x16x8x8xf32>
  %ex, %es, %eb = train.batch_norm_backward %q, %x, %s, %s, %s : (tensor<4x16x8x8xf32>, tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
  return %mean, %mean2, %ds, %es, %e : tensor<16xf32>, tensor<12xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4x16x8x8xf32>
}
}

// -----

// CHECK-LABEL: func.func @f32
// CHECK: train.conv %
// CHECK: train.batch_norm %
func.func @f32(%x: tensor<4x16x8x8xf32>, %w: tensor<8x16x1x1xf32>, %s: tensor<8xf32>) -> tensor<8xf32> {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x16x8x8xf32>, tensor<8x16x1x1xf32>) -> tensor<4x8x8x8xf32>
  %n, %mean, %rstd = train.batch_norm %y, %s, %s {epsilon = 1.0e-5 : f32} : (tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x8x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %mean : tensor<8xf32>
}
