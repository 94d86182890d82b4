// RUN: sluice-opt %s --split-input-file --sluice-pad-products | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-pad-products=multiple=1 | FileCheck %s --check-prefix=OFF --implicit-check-not='576'
// RUN: sluice-opt %s --split-input-file --sluice-pad-products="multiple=8 fewest=521" | FileCheck %s --check-prefix=EIGHT
// RUN: sluice-opt %s --split-input-file --sluice-pad-products=fewest=522 | FileCheck %s --check-prefix=OFF --implicit-check-not='576'
// What has the columns of a product of halves gets more of them, and what reads them knows how many count; what others see keeps its shape.
// OFF: tensor<64x521xf32>
// EIGHT: tensor<64x528xf32>

// A head with the embedding's weights: 521 columns, zeros up to 576.
train.variable @w role(parameter) init(zero) : tensor<521x32xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<521x32xf32>

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x16x32xbf16>, %target: tensor<64xi64>, %ids: tensor<4x16xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<521x32xf32>
  // CHECK: train.embedding {{.*}} (tensor<521x32xf32>, tensor<4x16xi64>) -> tensor<4x16x32xf32>
  %e = train.embedding %w, %ids {train.forward = 0 : i64} : (tensor<521x32xf32>, tensor<4x16xi64>) -> tensor<4x16x32xf32>
  // CHECK-NEXT: %[[W:.*]] = train.cast %{{.*}} {train.forward = 1 : i64} : (tensor<521x32xf32>) -> tensor<576x32xbf16>
  %h = train.cast %w {train.forward = 1 : i64} : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  // CHECK-NEXT: %[[Y:.*]] = train.matmul %{{.*}}, %[[W]] {{.*}} -> tensor<4x16x576xf32>
  %y = train.matmul %x, %h {transpose_b = true, train.forward = 1 : i64} : (tensor<4x16x32xbf16>, tensor<521x32xbf16>) -> tensor<4x16x521xf32>
  // CHECK-NEXT: %[[L:.*]] = train.reshape %[[Y]] {{.*}} -> tensor<64x576xf32>
  %l = train.reshape %y {train.forward = 2 : i64} : (tensor<4x16x521xf32>) -> tensor<64x521xf32>
  // CHECK-NEXT: train.softmax_cross_entropy %[[L]], %{{.*}} {classes = 521 : i64, ignore_index = -100 : i64, train.forward = 3 : i64} : (tensor<64x576xf32>, tensor<64xi64>)
  %loss = train.softmax_cross_entropy %l, %target {ignore_index = -100 : i64, train.forward = 3 : i64} : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  // CHECK-NEXT: %[[DL:.*]] = train.loss_backward softmax_cross_entropy %[[L]], %{{.*}} {classes = 521 : i64, ignore_index = -100 : i64, train.backward = 3 : i64} : {{.*}} -> tensor<64x576xbf16>
  %dl = train.loss_backward softmax_cross_entropy %l, %target {ignore_index = -100 : i64, train.backward = 3 : i64} : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<64x521xbf16>
  // CHECK-NEXT: %[[DY:.*]] = train.reshape %[[DL]] {{.*}} -> tensor<4x16x576xbf16>
  %dy = train.reshape %dl {train.backward = 2 : i64} : (tensor<64x521xbf16>) -> tensor<4x16x521xbf16>
  %rows = train.reshape %x {train.backward = 1 : i64} : (tensor<4x16x32xbf16>) -> tensor<64x32xbf16>
  // CHECK: %[[ALL:.*]] = train.matmul %[[DL]], %{{.*}} -> tensor<576x32xf32>
  // CHECK-NEXT: %[[DW:.*]] = train.slice %[[ALL]] {axis = 0 : i64, length = 521 : i64, start = 0 : i64, train.backward = 1 : i64} : (tensor<576x32xf32>) -> tensor<521x32xf32>
  %dw = train.matmul %dl, %rows {transpose_a = true, train.backward = 1 : i64} : (tensor<64x521xbf16>, tensor<64x32xbf16>) -> tensor<521x32xf32>
  // CHECK-NEXT: train.matmul %[[DY]], %[[W]] {{.*}} : (tensor<4x16x576xbf16>, tensor<576x32xbf16>) -> tensor<4x16x32xbf16>
  %dx = train.matmul %dy, %h {train.backward = 1 : i64} : (tensor<4x16x521xbf16>, tensor<521x32xbf16>) -> tensor<4x16x32xbf16>
  %old = train.read @w : tensor<521x32xf32>
  %momentum = train.read @"w/momentum" : tensor<521x32xf32>
  // CHECK: train.update(%[[DW]],
  %new:2 = train.update(%dw, %old, %momentum) rule(sgd) {train.backward = 1 : i64} : tensor<521x32xf32>
  return %loss : tensor<f32>
}

// Scores that can be predicted keep their shape.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: 576
func.func @evaluate(%x: tensor<64x32xbf16>, %target: tensor<64xi64>) -> (tensor<f32>, tensor<i64>, tensor<4x16x521xf32>) {
  %w = train.read @w : tensor<521x32xf32>
  %h = train.cast %w : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y = train.matmul %x, %h {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %loss = train.softmax_cross_entropy %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %n = train.count_correct %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<i64>
  %scores = train.reshape %y : (tensor<64x521xf32>) -> tensor<4x16x521xf32>
  return %loss, %n, %scores : tensor<f32>, tensor<i64>, tensor<4x16x521xf32>
}

// -----

// Weights with their columns last, and rows that are added: by the product, whose row a copy makes longer, and by an elementwise op.
train.variable @w role(parameter) init(zero) : tensor<32x1001xf32>
train.variable @b role(parameter) init(zero) : tensor<1001xf32>

// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<64x32xf16>, %target: tensor<64xi64>, %scale: tensor<f32>) -> (tensor<f32>, tensor<32x1001xf32>, tensor<1001xf32>) {
  %w = train.read @w : tensor<32x1001xf32>
  %b = train.read @b : tensor<1001xf32>
  // CHECK: %[[B:.*]] = train.read @b
  // CHECK-NEXT: %[[W:.*]] = train.cast %{{.*}} -> tensor<32x1024xf16>
  %h = train.cast %w {train.forward = 0 : i64} : (tensor<32x1001xf32>) -> tensor<32x1001xf16>
  // CHECK-NEXT: %[[ROW:.*]] = train.pad_slab %[[B]] {axis = 0 : i64, start = 0 : i64, train.forward = 0 : i64} : (tensor<1001xf32>) -> tensor<1024xf32>
  // CHECK-NEXT: %[[Y:.*]] = train.matmul %{{.*}}, %[[W]], %[[ROW]] {{.*}} -> tensor<64x1024xf32>
  %y = train.matmul %x, %h, %b {train.forward = 0 : i64} : (tensor<64x32xf16>, tensor<32x1001xf16>, tensor<1001xf32>) -> tensor<64x1001xf32>
  // CHECK-NEXT: %[[MORE:.*]] = train.pad_slab %[[B]]
  // CHECK-NEXT: %[[Z:.*]] = train.fused(%[[MORE]], %[[Y]] : tensor<1024xf32>, tensor<64x1024xf32>) {{.*}} -> (tensor<64x1024xf32>)
  %z = train.fused (%b, %y : tensor<1001xf32>, tensor<64x1001xf32>) channels [] sums 0 -> (tensor<64x1001xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    train.yield %0 : f32
  }
  // CHECK: train.softmax_cross_entropy %[[Z]], %{{.*}} {classes = 1001 : i64
  %loss = train.softmax_cross_entropy %z, %target {train.forward = 2 : i64} : (tensor<64x1001xf32>, tensor<64xi64>) -> tensor<f32>
  %dz = train.loss_backward softmax_cross_entropy %z, %target {train.backward = 2 : i64} : (tensor<64x1001xf32>, tensor<64xi64>) -> tensor<64x1001xf32>
  // What scales the gradient of the loss leaves zeros.
  // CHECK: %[[DY:.*]] = train.fused(%{{.*}}, %{{.*}} : tensor<64x1024xf32>, tensor<f32>) {{.*}} -> (tensor<64x1024xf16>)
  %dy = train.fused (%dz, %scale : tensor<64x1001xf32>, tensor<f32>) channels [] sums 0 -> (tensor<64x1001xf16>) attributes {train.backward = 1 : i64} {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.mulf %a, %s : f32
    train.yield %0 : f32
  }
  // CHECK: %[[ALL:.*]] = train.matmul %{{.*}}, %[[DY]] {{.*}} -> tensor<32x1024xf32>
  // CHECK-NEXT: train.slice %[[ALL]] {axis = 1 : i64, length = 1001 : i64, start = 0 : i64
  %dw = train.matmul %x, %dy {transpose_a = true, train.backward = 0 : i64} : (tensor<64x32xf16>, tensor<64x1001xf16>) -> tensor<32x1001xf32>
  // CHECK-NEXT: %[[SUMS:.*]] = train.sum_to %[[DY]] {{.*}} -> tensor<1024xf32>
  // CHECK-NEXT: train.slice %[[SUMS]] {axis = 0 : i64, length = 1001 : i64, start = 0 : i64
  %db = train.sum_to %dy {train.backward = 0 : i64} : (tensor<64x1001xf16>) -> tensor<1001xf32>
  // CHECK-NEXT: train.matmul %[[DY]], %[[W]] {{.*}}transpose_b = true} : (tensor<64x1024xf16>, tensor<32x1024xf16>) -> tensor<64x32xf16>
  %dx = train.matmul %dy, %h {transpose_b = true, train.backward = 0 : i64} : (tensor<64x1001xf16>, tensor<32x1001xf16>) -> tensor<64x32xf16>
  return %loss, %dw, %db : tensor<f32>, tensor<32x1001xf32>, tensor<1001xf32>
}

// A row that the product adds in 16 bits is longer by its own cast; right answers are counted among the classes alone.
// CHECK-LABEL: func.func @counted
func.func @counted(%x: tensor<64x32xbf16>, %target: tensor<64xi64>) -> tensor<i64> {
  %w = train.read @w : tensor<32x1001xf32>
  %b = train.read @b : tensor<1001xf32>
  %h = train.cast %w : (tensor<32x1001xf32>) -> tensor<32x1001xbf16>
  // CHECK: %[[B:.*]] = train.cast %{{.*}} : (tensor<1001xf32>) -> tensor<1024xbf16>
  // CHECK-NEXT: %[[Y:.*]] = train.matmul %{{.*}}, %{{.*}}, %[[B]] {{.*}} -> tensor<64x1024xbf16>
  %r = train.cast %b : (tensor<1001xf32>) -> tensor<1001xbf16>
  %y = train.matmul %x, %h, %r : (tensor<64x32xbf16>, tensor<32x1001xbf16>, tensor<1001xbf16>) -> tensor<64x1001xbf16>
  // CHECK: %[[Z:.*]] = train.fused(%[[Y]] : tensor<64x1024xbf16>) {{.*}} -> (tensor<64x1024xf32>)
  %z = train.fused (%y : tensor<64x1001xbf16>) channels [] sums 0 -> (tensor<64x1001xf32>) {
  ^bb0(%a: f32):
    %0 = math.tanh %a : f32
    train.yield %0 : f32
  }
  // CHECK: train.count_correct %[[Z]], %{{.*}} {classes = 1001 : i64} : (tensor<64x1024xf32>, tensor<64xi64>)
  %n = train.count_correct %z, %target : (tensor<64x1001xf32>, tensor<64xi64>) -> tensor<i64>
  return %n : tensor<i64>
}

// -----

// What stays: too few columns, whole rows of 16 bytes, floats, weights that are no variable's or that others read.
train.variable @few role(parameter) init(zero) : tensor<511x32xf32>
train.variable @even role(parameter) init(zero) : tensor<520x32xf32>
train.variable @odd role(parameter) init(zero) : tensor<521x32xf32>

// CHECK-LABEL: func.func @others
// CHECK-NOT: classes
func.func @others(%x: tensor<64x32xbf16>, %f: tensor<64x32xf32>, %v: tensor<521x32xf32>, %ids: tensor<4xi64>, %target: tensor<64xi64>) {
  %a = train.read @few : tensor<511x32xf32>
  %b = train.read @even : tensor<520x32xf32>
  %c = train.read @odd : tensor<521x32xf32>
  %ha = train.cast %a : (tensor<511x32xf32>) -> tensor<511x32xbf16>
  %hb = train.cast %b : (tensor<520x32xf32>) -> tensor<520x32xbf16>
  %hc = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %hv = train.cast %v : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %ya = train.matmul %x, %ha {transpose_b = true} : (tensor<64x32xbf16>, tensor<511x32xbf16>) -> tensor<64x511xf32>
  %yb = train.matmul %x, %hb {transpose_b = true} : (tensor<64x32xbf16>, tensor<520x32xbf16>) -> tensor<64x520xf32>
  %yc = train.matmul %x, %hc {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %yf = train.matmul %f, %c {transpose_b = true} : (tensor<64x32xf32>, tensor<521x32xf32>) -> tensor<64x521xf32>
  %yv = train.matmul %x, %hv {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %e = train.slice %hc {axis = 0 : i64, start = 0 : i64, length = 4 : i64} : (tensor<521x32xbf16>) -> tensor<4x32xbf16>
  %la = train.softmax_cross_entropy %ya, %target : (tensor<64x511xf32>, tensor<64xi64>) -> tensor<f32>
  %lb = train.softmax_cross_entropy %yb, %target : (tensor<64x520xf32>, tensor<64xi64>) -> tensor<f32>
  %lc = train.softmax_cross_entropy %yc, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %lf = train.softmax_cross_entropy %yf, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %lv = train.softmax_cross_entropy %yv, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  return
}

// Logits that another loss reads, or an op that looks across them, and a gradient that is not 0 where the loss's is.
// CHECK-LABEL: func.func @readers
// CHECK-NOT: classes
func.func @readers(%x: tensor<64x32xbf16>, %target: tensor<64xi64>, %wanted: tensor<64x521xf32>) {
  %c = train.read @odd : tensor<521x32xf32>
  %h0 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y0 = train.matmul %x, %h0 {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %l0 = train.softmax_cross_entropy %y0, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %m0 = train.mse %y0, %wanted : (tensor<64x521xf32>, tensor<64x521xf32>) -> tensor<f32>
  %h1 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y1 = train.matmul %x, %h1 {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %l1 = train.softmax_cross_entropy %y1, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %m1 = train.softmax %y1 {axis = 1 : i64} : (tensor<64x521xf32>) -> tensor<64x521xf32>
  %h2 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y2 = train.matmul %x, %h2 {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %d2 = train.loss_backward softmax_cross_entropy %y2, %target {train.backward = 1 : i64} : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<64x521xf32>
  %s2 = train.fused (%d2, %y2 : tensor<64x521xf32>, tensor<64x521xf32>) channels [] sums 0 -> (tensor<64x521xbf16>) attributes {train.backward = 0 : i64} {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    train.yield %0 : f32
  }
  %dw2 = train.matmul %s2, %x {transpose_a = true, train.backward = 0 : i64} : (tensor<64x521xbf16>, tensor<64x32xbf16>) -> tensor<521x32xf32>
  // A product of the logits, or of their gradient with something that has no zeros where it has some.
  %h3 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y3 = train.matmul %x, %h3 {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xbf16>
  %z3 = train.matmul %y3, %h3 : (tensor<64x521xbf16>, tensor<521x32xbf16>) -> tensor<64x32xf32>
  %h4 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %o4 = train.cast %c : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y4 = train.matmul %x, %h4 {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %d4 = train.loss_backward softmax_cross_entropy %y4, %target {train.backward = 1 : i64} : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<64x521xbf16>
  %x4 = train.matmul %d4, %o4 {train.backward = 0 : i64} : (tensor<64x521xbf16>, tensor<521x32xbf16>) -> tensor<64x32xf32>
  return
}

// -----

// Two parts of a loss's rows, one after the other, all of them backward: the gradient of the second part is added to the whole one of the first, and their sum alone is cut. An
// elementwise op is one of logits where no gradient goes in.
train.variable @w role(parameter) init(zero) : tensor<521x32xf32>
train.variable @b role(parameter) init(zero) : tensor<521xf32>
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<32x32xbf16>, %z: tensor<32x32xbf16>, %target: tensor<64xi64>) -> (tensor<f32>, tensor<f32>, tensor<521x32xf32>) {
  %w = train.read @w : tensor<521x32xf32>
  %b = train.read @b : tensor<521xf32>
  %h = train.cast %w {train.backward = 0 : i64} : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y = train.matmul %x, %h {transpose_b = true, train.backward = 0 : i64} : (tensor<32x32xbf16>, tensor<521x32xbf16>) -> tensor<32x521xf32>
  // CHECK: %[[ROW:.*]] = train.pad_slab {{.*}} -> tensor<576xf32>
  // CHECK: %[[L:.*]] = train.fused(%{{.*}}, %[[ROW]] : tensor<32x576xf32>, tensor<576xf32>) {{.*}} -> (tensor<32x576xf32>)
  %l = train.fused (%y, %b : tensor<32x521xf32>, tensor<521xf32>) channels [] sums 0 -> (tensor<32x521xf32>) attributes {train.backward = 0 : i64} {
  ^bb0(%one: f32, %other: f32):
    %sum = arith.addf %one, %other : f32
    train.yield %sum : f32
  }
  %loss = train.softmax_cross_entropy %l, %target {first = 0 : i64, train.backward = 0 : i64} : (tensor<32x521xf32>, tensor<64xi64>) -> tensor<f32>
  // CHECK: %[[D:.*]] = train.loss_backward softmax_cross_entropy %[[L]], %{{.*}} {classes = 521 : i64, first = 0 : i64
  %d = train.loss_backward softmax_cross_entropy %l, %target {first = 0 : i64, train.backward = 0 : i64} : (tensor<32x521xf32>, tensor<64xi64>) -> tensor<32x521xbf16>
  // CHECK: %[[FIRST:.*]] = train.matmul %[[D]], %{{.*}} : (tensor<32x576xbf16>, tensor<32x32xbf16>) -> tensor<576x32xf32>
  // CHECK-NOT: train.slice
  %dw = train.matmul %d, %x {transpose_a = true, train.backward = 0 : i64} : (tensor<32x521xbf16>, tensor<32x32xbf16>) -> tensor<521x32xf32>
  %y2 = train.matmul %z, %h {transpose_b = true, train.backward = 0 : i64} : (tensor<32x32xbf16>, tensor<521x32xbf16>) -> tensor<32x521xf32>
  %loss2 = train.softmax_cross_entropy %y2, %target {first = 32 : i64, train.backward = 0 : i64} : (tensor<32x521xf32>, tensor<64xi64>) -> tensor<f32>
  %d2 = train.loss_backward softmax_cross_entropy %y2, %target {first = 32 : i64, train.backward = 0 : i64} : (tensor<32x521xf32>, tensor<64xi64>) -> tensor<32x521xbf16>
  // CHECK: %[[BOTH:.*]] = train.matmul %{{.*}}, %{{.*}}, %[[FIRST]] {{.*}} : (tensor<32x576xbf16>, tensor<32x32xbf16>, tensor<576x32xf32>) -> tensor<576x32xf32>
  // CHECK-NEXT: %[[DW:.*]] = train.slice %[[BOTH]] {axis = 0 : i64, length = 521 : i64, start = 0 : i64
  %dw2 = train.matmul %d2, %z, %dw {transpose_a = true, train.backward = 0 : i64} : (tensor<32x521xbf16>, tensor<32x32xbf16>, tensor<521x32xf32>) -> tensor<521x32xf32>
  // CHECK: return %{{.*}}, %{{.*}}, %[[DW]]
  return %loss, %loss2, %dw2 : tensor<f32>, tensor<f32>, tensor<521x32xf32>
}

// -----

// What is added to has no columns of zeros.
train.variable @w role(parameter) init(zero) : tensor<521x32xf32>
// CHECK-LABEL: func.func @step
// CHECK-NOT: 576
func.func @step(%x: tensor<64x32xbf16>, %target: tensor<64xi64>, %before: tensor<521x32xf32>) -> (tensor<f32>, tensor<521x32xf32>) {
  %w = train.read @w : tensor<521x32xf32>
  %h = train.cast %w : (tensor<521x32xf32>) -> tensor<521x32xbf16>
  %y = train.matmul %x, %h {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
  %loss = train.softmax_cross_entropy %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
  %d = train.loss_backward softmax_cross_entropy %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<64x521xbf16>
  %dw = train.matmul %d, %x, %before {transpose_a = true} : (tensor<64x521xbf16>, tensor<64x32xbf16>, tensor<521x32xf32>) -> tensor<521x32xf32>
  return %loss, %dw : tensor<f32>, tensor<521x32xf32>
}
