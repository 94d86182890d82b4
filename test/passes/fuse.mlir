// RUN: sluice-opt %s --sluice-fuse | FileCheck %s
// RUN: sluice-opt %s --sluice-fuse=repeat=false | FileCheck %s --check-prefix=STORED
// What becomes one region and what does not: a residual block's end forward and backward, and every reason for which two elementwise ops
// stay apart.

// Statistics keep their own kernel; normalize, add and relu are one region that reads x, y and four channel vectors once.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<8x4x2x2xf32>, %[[R:.*]]: tensor<8x4x2x2xf32>, %[[S:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[MEAN:.*]], %[[RSTD:.*]] = train.batch_norm_statistics %[[X]] {epsilon = 9.99999974E-6 : f32, train.forward = 0 : i64}
// CHECK-NEXT: %[[Y:.*]] = train.fused(%[[X]], %[[MEAN]], %[[RSTD]], %[[S]], %[[B]], %[[R]] : {{.*}}) channels [1, 2, 3, 4] sums 0 -> (tensor<8x4x2x2xf32>)
// CHECK-SAME: train.forward = 2 : i64, train.rule = "normalize+add+relu"
// CHECK-NEXT: ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[A2:.*]]: f32, %[[A3:.*]]: f32, %[[A4:.*]]: f32, %[[A5:.*]]: f32):
// CHECK-NEXT: %[[V0:.*]] = arith.subf %[[A0]], %[[A1]] : f32
// CHECK-NEXT: %[[V1:.*]] = arith.mulf %[[V0]], %[[A2]] : f32
// CHECK-NEXT: %[[V2:.*]] = arith.mulf %[[V1]], %[[A3]] : f32
// CHECK-NEXT: %[[V3:.*]] = arith.addf %[[V2]], %[[A4]] : f32
// CHECK-NEXT: %[[V4:.*]] = arith.addf %[[V3]], %[[A5]] : f32
// CHECK: train.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: return %[[Y]], %[[MEAN]]
func.func @forward(%x: tensor<8x4x2x2xf32>, %r: tensor<8x4x2x2xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>) {
  %n, %mean, %rstd = train.batch_norm %x, %s, %b {epsilon = 1.0e-5 : f32, train.forward = 0 : i64} : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  %a = train.add %n, %r {train.forward = 1 : i64} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  %y = train.relu %a {train.forward = 2 : i64} : (tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  return %y, %mean : tensor<8x4x2x2xf32>, tensor<4xf32>
}

// ReLU's gradient sinks into the channel sums, which yield it as a full result because normalize_backward reads it too. That one waits
// for the sums and stays a region of its own.
// CHECK-LABEL: func.func @backward
// CHECK: %[[SUMS:.*]]:3 = train.fused({{.*}}) channels [{{.*}}] sums 2 -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME: train.rule = "relu_backward+normalize_reduce"
// CHECK: %[[DX:.*]] = train.fused(%[[SUMS]]#0, {{.*}}, %[[SUMS]]#1, %[[SUMS]]#2 : {{.*}}) channels [2, 3, 4, 5, 6] sums 0 -> (tensor<8x4x2x2xf32>)
// CHECK-SAME: train.rule = "normalize_backward"
// count is 8 * 2 * 2
// CHECK: arith.constant 3.125000e-02 : f32
// CHECK: return %[[DX]], %[[SUMS]]#1, %[[SUMS]]#2
func.func @backward(%dy: tensor<8x4x2x2xf32>, %y: tensor<8x4x2x2xf32>, %x: tensor<8x4x2x2xf32>, %v: tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) {
  %d = train.relu_backward %dy, %y : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  %dx, %ds, %db = train.batch_norm_backward %d, %x, %v, %v, %v : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %ds, %db : tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>
}

// The images need no gradient: no normalize_backward is made.
// CHECK-LABEL: func.func @first_layer
// CHECK-COUNT-1: train.fused
// CHECK-NOT: train.fused
// CHECK: return
func.func @first_layer(%dy: tensor<8x4x2x2xf32>, %x: tensor<8x4x2x2xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  %dx, %ds, %db = train.batch_norm_backward %dy, %x, %v, %v, %v : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  return %ds : tensor<4xf32>
}

// A matmul between the two reads the first one's result: it cannot run later.
// CHECK-LABEL: func.func @read_in_between
// CHECK: train.rule = "relu"
// CHECK: train.matmul
// CHECK: train.rule = "add"
func.func @read_in_between(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = train.relu %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = train.matmul %a, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = train.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// The first runs over another shape than the second: broadcasting it inside the region would compute it 8 times.
// CHECK-LABEL: func.func @other_shape
// CHECK: train.rule = "sigmoid"
// CHECK: train.rule = "mul"
func.func @other_shape(%x: tensor<8x4xf32>, %g: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %s = train.sigmoid %g : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = train.mul %x, %s : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// Sinking %s would keep %p and %q, whose last reader it is, alive beside the two products for the sake of one result.
// CHECK-LABEL: func.func @longer_lives
// CHECK: train.rule = "add"
// CHECK: train.matmul
// CHECK: train.rule = "mul"
func.func @longer_lives(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %p = train.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = train.matmul %p, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = train.add %p, %q : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %x, %x {transpose_a = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = train.mul %s, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// One operand lives longer, one result is saved: no byte more.
// CHECK-LABEL: func.func @as_long_lives
// CHECK: train.matmul
// CHECK: train.matmul
// CHECK-NEXT: train.fused
// CHECK-SAME: train.rule = "tanh+mul"
func.func @as_long_lives(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %p = train.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = train.tanh %p : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %x, %x {transpose_a = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = train.mul %s, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Both regions of the gradient of BatchNorm and ReLU read what BatchNorm read, so they see the sign of %y in it, and neither is written
// %d nor read %y, which nobody needs any more. %b's update waits for them. Plans that bring %x back inexactly read %y.
// CHECK-LABEL: func.func @repeated
// CHECK-SAME: %[[X:.*]]: tensor<8x4x2x2xf32>, %[[DY:.*]]: tensor<8x4x2x2xf32>
// CHECK: train.rule = "normalize+relu"
// CHECK: %[[SUMS:.*]]:2 = train.fused(%[[X]], {{.*}}, %[[DY]] : {{.*}}) channels [1, 2, 3, 4] sums 2 -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME: train.rule = "normalize+relu_backward+normalize_reduce"
// CHECK: train.fused(%[[X]], {{.*}}, %[[DY]], %[[SUMS]]#0, %[[SUMS]]#1 : {{.*}}) channels [1, 2, 3, 4, 6, 7] sums 0 -> (tensor<8x4x2x2xf32>)
// CHECK-SAME: train.rule = "normalize+relu_backward+normalize_backward"
// What both of them subtract from x and multiply is computed once, and the sign is that of what ReLU got.
// CHECK: ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[A2:.*]]: f32, %[[A3:.*]]: f32, %[[A4:.*]]: f32, %[[A5:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V0:.*]] = arith.subf %[[A0]], %[[A1]] : f32
// CHECK-NEXT: %[[V1:.*]] = arith.mulf %[[V0]], %[[A2]] : f32
// CHECK-NEXT: %[[V2:.*]] = arith.mulf %[[V1]], %[[A3]] : f32
// CHECK-NEXT: %[[V3:.*]] = arith.addf %[[V2]], %[[A4]] : f32
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[NOT:.*]] = arith.cmpf ole, %[[V3]], %[[ZERO]] : f32
// CHECK-NEXT: %[[D:.*]] = arith.select %[[NOT]], %[[ZERO]], %[[A5]] : f32
// CHECK-NOT: arith.subf %[[A0]], %[[A1]]
// CHECK: train.update(
// STORED-LABEL: func.func @repeated
// STORED: train.rule = "relu_backward+normalize_reduce"
// STORED: train.rule = "normalize_backward"
train.variable @b role(parameter) init(file) : tensor<4xf32>
train.variable @m role(optimizer) init(zero) : tensor<4xf32>
func.func @repeated(%x: tensor<8x4x2x2xf32>, %dy: tensor<8x4x2x2xf32>, %s: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<8x8xf32>, tensor<8x4x2x2xf32>) {
  %b = train.read @b : tensor<4xf32>
  %n, %mean, %rstd = train.batch_norm %x, %s, %b {epsilon = 1.0e-5 : f32} : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  %y = train.relu %n : (tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  %f = train.reshape %y : (tensor<8x4x2x2xf32>) -> tensor<8x16xf32>
  %p = train.matmul %f, %f {transpose_b = true} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  %old1 = train.read @b : tensor<4xf32>
  %old1_0 = train.read @m : tensor<4xf32>
  %new1:2 = train.update(%g, %old1, %old1_0) rule(sgd) : tensor<4xf32>
  %d = train.relu_backward %dy, %y : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  %dx, %ds, %db = train.batch_norm_backward %d, %x, %mean, %rstd, %s : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  return %p, %dx : tensor<8x8xf32>, tensor<8x4x2x2xf32>
}

// %a is written and read by %c; to compute it again %c would have to read %p and %q in its place.
// CHECK-LABEL: func.func @more_operands
// CHECK: train.rule = "add"
// CHECK: train.matmul
// CHECK: train.rule = "mul"
func.func @more_operands(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = train.add %p, %q : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %a, %p : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = train.mul %a, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// A draw costs more than reading what it made.
// CHECK-LABEL: func.func @random
// CHECK: train.rule = "dropout"
// CHECK: train.matmul
// CHECK: train.rule = "mul+add"
func.func @random(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = train.dropout %x {ratio = 5.0e-1 : f32, key = 7 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %a, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = train.mul %a, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.add %c, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}

// On which side of both bounds a clipped value lies can be asked of the value; whether it lies on a bound cannot.
// CHECK-LABEL: func.func @clipped
// CHECK: train.rule = "clip_backward+mul"
// CHECK: ^bb0(%[[X:.*]]: f32, %[[DY:.*]]: f32):
// CHECK-NOT: arith.cmpf olt, %[[X]], %{{.*}}
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]]
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]]
// CHECK-LABEL: func.func @clipped_at_other_bounds
// CHECK: train.rule = "clip+clip_backward+mul"
// CHECK: ^bb0(%[[X:.*]]: f32, %[[DY:.*]]: f32):
// CHECK: %[[LOW:.*]] = arith.cmpf olt, %[[X]]
// CHECK: arith.select %[[LOW]]
// CHECK-NOT: arith.cmpf {{.*}}, %[[X]]
// CHECK-LABEL: func.func @clipped_behind_batch_norm
// CHECK: train.rule = "normalize+clip_backward+normalize_reduce"
func.func @clipped(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %y = train.clip %x {min = 0.0 : f32, max = 6.0 : f32} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = train.clip_backward %dy, %y {min = 0.0 : f32, max = 6.0 : f32} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.mul %d, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m, %e : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func @clipped_at_other_bounds(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %y = train.clip %x {min = 0.0 : f32, max = 6.0 : f32} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = train.matmul %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = train.clip_backward %dy, %y {min = -1.0 : f32, max = 7.0 : f32} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.mul %d, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m, %e : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func @clipped_behind_batch_norm(%x: tensor<64x4xf32>, %dy: tensor<64x4xf32>, %v: tensor<4xf32>) -> (tensor<64x64xf32>, tensor<4xf32>) {
  %n, %mean, %rstd = train.batch_norm %x, %v, %v {epsilon = 1.0e-5 : f32} : (tensor<64x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<64x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %y = train.clip %n {min = 0.0 : f32, max = 6.0 : f32} : (tensor<64x4xf32>) -> tensor<64x4xf32>
  %m = train.matmul %y, %x {transpose_b = true} : (tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<64x64xf32>
  %d = train.clip_backward %dy, %y {min = 0.0 : f32, max = 6.0 : f32} : (tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<64x4xf32>
  %dx, %ds, %db = train.batch_norm_backward %d, %x, %mean, %rstd, %v : (tensor<64x4xf32>, tensor<64x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<64x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %m, %ds : tensor<64x64xf32>, tensor<4xf32>
}

// A gate with an adapter is a sum of two products. Its gradients compute its sigmoid and what that made of it again from the sum, whose bytes they read anyway, or stand for: written are the sum and the
// product alone.
// CHECK-LABEL: func.func @from_another_result
// CHECK: %[[R:.*]]:2 = train.fused(
// CHECK-SAME: train.rule = "add+sigmoid+mul+mul"
// CHECK: %[[DH:.*]] = train.matmul
// CHECK: train.fused(%[[R]]#1, %[[DH]] : {{.*}}) channels [] sums 0 -> (tensor<8x8xf32>)
// CHECK-SAME: train.rule = "sigmoid+mul+mul"
// CHECK: train.fused(%[[R]]#1, %[[DH]], %{{[^ ,]*}} : {{.*}}) channels [] sums 0 -> (tensor<8x8xf32>)
// CHECK-SAME: train.rule = "sigmoid+mul+mul+mul+sigmoid_backward+add"
// STORED-LABEL: func.func @from_another_result
// STORED: %{{.*}}:4 = train.fused(
func.func @from_another_result(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %u: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %gate = train.add %p, %q : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = train.sigmoid %gate : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %silu = train.mul %gate, %s : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = train.mul %silu, %u : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dh = train.matmul %h, %h : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %du = train.mul %dh, %silu : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %du_in = train.matmul %du, %p : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dsilu = train.mul %dh, %u : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = train.mul %dsilu, %s : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %ds = train.mul %dsilu, %gate : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = train.sigmoid_backward %ds, %s : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dgate = train.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %du_in, %dgate : tensor<8x8xf32>, tensor<8x8xf32>
}

// Statistics of what is joined are those of its parts, joined: of %c those of %a, which has some, and of %b; of %e those of %c and of %d. %f is
// joined of two tensors of which the smaller one has some: they are made anew, as are those of another epsilon.
// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[A:.*]]: tensor<8x4x2x2xf32>, %[[B:.*]]: tensor<8x2x2x2xf32>, %[[D:.*]]: tensor<8x2x2x2xf32>,
// CHECK-NEXT: %[[MA:.*]], %[[RA:.*]] = train.batch_norm_statistics %[[A]] {{.*}}train.forward = 0
// CHECK: %[[C:.*]] = train.concat %[[A]], %[[B]] {axis = 1
// CHECK-NEXT: %[[MB:.*]], %[[RB:.*]] = train.batch_norm_statistics %[[B]] {{.*}}train.forward = 2
// CHECK-NEXT: %[[MC:.*]] = train.concat %[[MA]], %[[MB]] {axis = 0 : i64, train.forward = 2 : i64} : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
// CHECK-NEXT: %[[RC:.*]] = train.concat %[[RA]], %[[RB]] {axis = 0 : i64, train.forward = 2 : i64}
// CHECK-NOT: train.batch_norm_statistics
// CHECK: train.concat %[[A]], %[[B]], %[[D]]
// CHECK-NEXT: %[[MD:.*]], %[[RD:.*]] = train.batch_norm_statistics %[[D]]
// CHECK-NEXT: %[[ME:.*]] = train.concat %[[MC]], %[[MD]]
// CHECK-NEXT: train.concat %[[RC]], %[[RD]]
// CHECK: %[[F:.*]] = train.concat %[[X:.*]], %[[D]]
// CHECK-NEXT: %[[MF:.*]], %{{.*}} = train.batch_norm_statistics %[[F]]
// CHECK: %[[MG:.*]], %{{.*}} = train.batch_norm_statistics %[[C]] {epsilon = 1.000000e-03
// CHECK-NOT: train.batch_norm_statistics
// CHECK: return %[[MA]], %[[MC]], %[[ME]], %[[MF]], %[[MG]]
func.func @joined(%a: tensor<8x4x2x2xf32>, %b: tensor<8x2x2x2xf32>, %d: tensor<8x2x2x2xf32>, %x: tensor<8x4x2x2xf32>, %v4: tensor<4xf32>, %v6: tensor<6xf32>, %v8: tensor<8xf32>) -> (tensor<4xf32>, tensor<6xf32>, tensor<8xf32>, tensor<6xf32>, tensor<6xf32>) {
  %na, %ma, %ra = train.batch_norm %a, %v4, %v4 {epsilon = 1.0e-5 : f32, train.forward = 0 : i64} : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
  %c = train.concat %a, %b {axis = 1 : i64, train.forward = 1 : i64} : (tensor<8x4x2x2xf32>, tensor<8x2x2x2xf32>) -> tensor<8x6x2x2xf32>
  %nc, %mc, %rc = train.batch_norm %c, %v6, %v6 {epsilon = 1.0e-5 : f32, train.forward = 2 : i64} : (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>)
  %e = train.concat %a, %b, %d {axis = 1 : i64, train.forward = 3 : i64} : (tensor<8x4x2x2xf32>, tensor<8x2x2x2xf32>, tensor<8x2x2x2xf32>) -> tensor<8x8x2x2xf32>
  %ne, %me, %re = train.batch_norm %e, %v8, %v8 {epsilon = 1.0e-5 : f32, train.forward = 4 : i64} : (tensor<8x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>)
  %f = train.concat %x, %d {axis = 1 : i64, train.forward = 5 : i64} : (tensor<8x4x2x2xf32>, tensor<8x2x2x2xf32>) -> tensor<8x6x2x2xf32>
  %nf, %mf, %rf = train.batch_norm %f, %v6, %v6 {epsilon = 1.0e-5 : f32, train.forward = 6 : i64} : (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>)
  %ng, %mg, %rg = train.batch_norm %c, %v6, %v6 {epsilon = 1.0e-3 : f32, train.forward = 7 : i64} : (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<8x6x2x2xf32>, tensor<6xf32>, tensor<6xf32>)
  return %ma, %mc, %me, %mf, %mg : tensor<4xf32>, tensor<6xf32>, tensor<8xf32>, tensor<6xf32>, tensor<6xf32>
}
