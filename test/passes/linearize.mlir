// RUN: sluice-opt %s --sluice-linearize | FileCheck %s
// A residual block. %a, and after it %r, separates the graph alone: a stage ends behind each. Inside the block two values cross, so branch and
// join are one stage; the loss is a stage of its own. Backward ops have the stage of their forward op.

// CHECK-LABEL: func.func @step
// CHECK: train.matmul {{.*}}train.forward = 0 : i64, train.stage = 0 : i64
// CHECK: train.fused({{.*}}train.forward = 1 : i64
// CHECK-SAME: train.stage = 1 : i64
// CHECK: train.matmul {{.*}}train.forward = 2 : i64, train.stage = 2 : i64
// The branch's value is not read again: the join works in its bytes. Operand 0, %r, is read by the backward part.
// CHECK: train.fused({{.*}}train.forward = 3 : i64, train.in_place = array<i64: 1>, train.stage = 2 : i64
// CHECK: train.mse {{.*}}train.forward = 4 : i64, train.stage = 3 : i64
// Nobody reads the output after the loss: its gradient takes its bytes.
// CHECK: train.loss_backward {{.*}}train.backward = 4 : i64, train.in_place = array<i64: 0>, train.stage = 3 : i64
// CHECK: train.matmul {{.*}}train.backward = 2 : i64, train.stage = 2 : i64
// Both operands end here. Each result takes bytes of its own; a sum of channels takes none.
// CHECK: train.fused({{.*}}train.backward = 1 : i64, train.in_place = array<i64: 0, 1, -1>, train.stage = 1 : i64
// A view of %dx is read later, so %dx keeps its bytes.
// CHECK: train.reshape
// CHECK: train.fused(
// CHECK-NOT: train.in_place
// CHECK: train.matmul {{.*}}train.backward = 0 : i64, train.stage = 0 : i64
func.func @step(%x: tensor<8x8xf32>, %target: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<f32> {
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = train.fused (%a : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  %b = train.matmul %r, %w {train.forward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %j = train.fused (%r, %b : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 3 : i64} {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.addf %s, %t : f32
    train.yield %0 : f32
  }
  %loss = train.mse %j, %target {train.forward = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
  %dj = train.loss_backward mse %j, %target {train.backward = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %db = train.matmul %dj, %r {train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx:3 = train.fused (%db, %dj, %a : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 1 -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32, %u: f32):
    %0 = arith.addf %s, %t : f32
    %1 = arith.mulf %s, %u : f32
    train.yield %0, %1, %0 : f32, f32, f32
  }
  %view = train.reshape %dx#0 {train.backward = 1 : i64} : (tensor<8x8xf32>) -> tensor<64xf32>
  %e = train.fused (%dx#0 : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  %flat = train.reshape %view {train.backward = 0 : i64} : (tensor<64xf32>) -> tensor<8x8xf32>
  %dw = train.matmul %e, %flat {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %loss : tensor<f32>
}

// Arguments are batch slots, which outlive the step, and one region does not overwrite what it also reads through a view.
// CHECK-LABEL: func.func @never_in_place
// CHECK-NOT: train.in_place
func.func @never_in_place(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = train.fused (%x : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 0 : i64} {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  %row = train.reshape %a {train.forward = 1 : i64} : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %turned = train.reshape %row {train.forward = 2 : i64} : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
  %y = train.fused (%a, %turned : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 3 : i64} {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.addf %s, %t : f32
    train.yield %0 : f32
  }
  return %y : tensor<8x8xf32>
}

// Gradients of a value with three readers add up in the bytes of the first.
// CHECK-LABEL: func.func @accumulated
// CHECK: %[[SUM:.*]] = train.fused(%[[G1:[^,]*]], %{{.*}} train.in_place = array<i64: 0>
// CHECK: train.fused(%[[SUM]], %{{.*}} train.in_place = array<i64: 0>
func.func @accumulated(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %g1 = train.matmul %x, %w {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g2 = train.matmul %w, %x {train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = train.fused (%g1, %g2 : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 2 : i64} {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.addf %p, %q : f32
    train.yield %0 : f32
  }
  %g3 = train.matmul %x, %x {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = train.fused (%s, %g3 : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.addf %p, %q : f32
    train.yield %0 : f32
  }
  %dw = train.matmul %t, %x {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %dw : tensor<8x8xf32>
}

// A product is added to a gradient in its bytes, backward, unless somebody reads that later, or something else is done on the way.
// CHECK-LABEL: func.func @added
// CHECK: %[[G1:.*]] = train.matmul
// CHECK-NEXT: %[[G2:.*]] = train.matmul %{{.*}}, %{{.*}}, %[[G1]] {train.backward = 3 : i64, train.in_place = array<i64: 2>
// CHECK-NEXT: train.matmul %{{.*}}, %{{.*}}, %[[G2]] {train.backward = 2 : i64}
// CHECK-NEXT: train.matmul %{{.*}}, %{{.*}}, %[[G2]] {alpha = 2.000000e+00 : f32, train.backward = 2 : i64}
// CHECK-NEXT: train.matmul %{{.*}}, %{{.*}}, %[[G2]] {beta = 2.000000e+00 : f32, train.backward = 1 : i64}
func.func @added(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %g1 = train.matmul %x, %w {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g2 = train.matmul %w, %x, %g1 {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g3 = train.matmul %w, %x, %g2 {train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g4 = train.matmul %w, %x, %g2 {alpha = 2.0 : f32, train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g5 = train.matmul %w, %x, %g2 {beta = 2.0 : f32, train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %g3, %g4, %g5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Kernels add a row or a column as such, once the product is there.
// CHECK-LABEL: func.func @added_lines
// CHECK-NOT: train.in_place
func.func @added_lines(%x: tensor<8x8xf32>, %row: tensor<1x8xf32>, %column: tensor<8x1xf32>) -> (tensor<1x8xf32>, tensor<8x1xf32>) {
  %r1 = train.matmul %row, %x {train.backward = 1 : i64} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  %r2 = train.matmul %row, %x, %r1 {train.backward = 1 : i64} : (tensor<1x8xf32>, tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %c1 = train.matmul %x, %column {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %c2 = train.matmul %x, %column, %c1 {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  return %r2, %c2 : tensor<1x8xf32>, tensor<8x1xf32>
}

// A sum and its square, which an RMSNorm takes the mean of, are handed on by one op: a stage ends behind it, though two values cross.
// CHECK-LABEL: func.func @square
// CHECK: train.matmul {{.*}}train.forward = 0 : i64, train.stage = 0 : i64
// CHECK: train.fused({{.*}}train.forward = 1 : i64, {{.*}}train.stage = 1 : i64
// CHECK: train.sum_to {{.*}}train.forward = 2 : i64, train.stage = 2 : i64
// CHECK: train.fused({{.*}}train.forward = 3 : i64, {{.*}}train.stage = 2 : i64
func.func @square(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %both:2 = train.fused (%a, %x : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>, tensor<8x8xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.addf %s, %t : f32
    %1 = arith.mulf %0, %0 : f32
    train.yield %1, %0 : f32, f32
  }
  %mean = train.sum_to %both#0 {factor = 1.250000e-01 : f32, train.forward = 2 : i64} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %y = train.fused (%both#1, %mean : tensor<8x8xf32>, tensor<8x1xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 3 : i64} {
  ^bb0(%s: f32, %t: f32):
    %0 = arith.mulf %s, %t : f32
    train.yield %0 : f32
  }
  return %y : tensor<8x8xf32>
}
