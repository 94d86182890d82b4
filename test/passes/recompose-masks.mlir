// RUN: sluice-opt %s --sluice-recompose | FileCheck %s
// Masks of attention: numbers that are added, numbers in place of scores, factors behind them. A row that finite numbers hide whole still has
// probabilities, so a triangle of them makes attention causal only where nothing else hides what it leaves.

module {
  train.variable @least role(constant) init(file) : tensor<f32> {value = dense<0xFF800000> : tensor<f32>}
  train.variable @most role(constant) init(file) : tensor<f32> {value = dense<0x7F800000> : tensor<f32>}
  train.variable @low role(constant) init(file) : tensor<f32> {value = dense<-1.0e9> : tensor<f32>}
  train.variable @triangle role(constant) init(file) : tensor<3x3xf32> {value = dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>}
  train.variable @seen role(constant) init(file) : tensor<3x3xf32> {value = dense<[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]> : tensor<3x3xf32>}
  train.variable @first role(constant) init(file) : tensor<3xf32> {value = dense<[-9.0e2, 0.0, 0.0]> : tensor<3xf32>}
  train.variable @one role(constant) init(file) : tensor<f32> {value = dense<1.0> : tensor<f32>}
  train.variable @zero role(constant) init(file) : tensor<f32> {value = dense<0.0> : tensor<f32>}
  train.variable @zeros role(constant) init(file) : tensor<2x3x3xf32> {value = dense<0.0> : tensor<2x3x3xf32>}
  train.variable @places role(constant) init(file) : tensor<3x3xf32> {value = dense<[[0.0, 1.0, 2.0], [-1.0, 0.0, 1.0], [-2.0, -1.0, 0.0]]> : tensor<3x3xf32>}

  // Where the condition does not hold, the score is the number, and nothing goes back to it.
  // CHECK-LABEL: func.func @filled
  // CHECK: %[[LOW:.*]] = train.read @low
  // CHECK: %[[ZERO:.*]] = train.compare %[[LOW]], %[[LOW]] {predicate = 1 : i32}
  // CHECK: %[[ADDED:.*]] = train.select %arg1, %[[ZERO]], %[[LOW]] : (tensor<2x1x3xf32>, tensor<f32>, tensor<f32>) -> tensor<2x1x3xf32>
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[ADDED]], %arg1 {scale = 1.000000e+00 : f32}
  func.func @filled(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %low = train.read @low : tensor<f32>
    %l = train.select %m, %s, %low : (tensor<2x1x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // The other way round the condition is turned.
  // CHECK-LABEL: func.func @filled_where_true
  // CHECK: %[[ADDED:.*]] = train.select %arg1, %{{.*}}, %{{.*}}
  // CHECK-NEXT: %[[KEPT:.*]] = train.compare %arg1, %{{.*}} {predicate = 2 : i32} : (tensor<2x1x3xf32>, tensor<f32>) -> tensor<2x1x3xf32>
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[ADDED]], %[[KEPT]]
  func.func @filled_where_true(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %low = train.read @low : tensor<f32>
    %l = train.select %m, %low, %s : (tensor<2x1x3xf32>, tensor<f32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // Rows of padding see nothing of what the triangle leaves, but in PyTorch they see something.
  // CHECK-LABEL: func.func @padded_causal
  // CHECK: %[[SEEN:.*]] = train.read @seen
  // CHECK: %[[INNER:.*]] = train.select %{{.*}}, %{{.*}}, %{{.*}}
  // CHECK-NEXT: %[[ADDED:.*]] = train.add %[[INNER]], %arg1
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[ADDED]], %{{.*}} {scale = 1.000000e+00 : f32}
  func.func @padded_causal(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %low = train.read @low : tensor<f32>
    %seen = train.read @seen : tensor<3x3xf32>
    %c = train.select %seen, %s, %low : (tensor<3x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %l = train.add %c, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // -infinity hides whatever else is there.
  // CHECK-LABEL: func.func @padded_causal_hard
  // CHECK: train.attention %arg0, %arg0, %arg0, %arg1 {causal = true, scale = 1.000000e+00 : f32}
  func.func @padded_causal_hard(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %least = train.read @least : tensor<f32>
    %seen = train.read @seen : tensor<3x3xf32>
    %c = train.select %seen, %s, %least : (tensor<3x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %l = train.add %c, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A finite number takes the place of the triangle's.
  // CHECK-LABEL: func.func @replaced_triangle
  // CHECK-NOT: causal = true
  // CHECK: train.attention %arg0, %arg0, %arg0, %{{.*}}, %arg1 {scale = 1.000000e+00 : f32}
  func.func @replaced_triangle(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %least = train.read @least : tensor<f32>
    %low = train.read @low : tensor<f32>
    %seen = train.read @seen : tensor<3x3xf32>
    %c = train.select %seen, %s, %least : (tensor<3x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %l = train.select %m, %c, %low : (tensor<2x1x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // So does another triangle's, where padding is added.
  // CHECK-LABEL: func.func @two_triangles
  // CHECK-NOT: causal = true
  // CHECK: train.attention %arg0, %arg0, %arg0, %{{.*}}, %{{.*}} {scale = 1.000000e+00 : f32}
  func.func @two_triangles(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %least = train.read @least : tensor<f32>
    %low = train.read @low : tensor<f32>
    %seen = train.read @seen : tensor<3x3xf32>
    %c = train.select %seen, %s, %least : (tensor<3x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %d = train.select %seen, %c, %low : (tensor<3x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %l = train.add %d, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A constant of positions hides nothing.
  // CHECK-LABEL: func.func @places_causal
  // CHECK: %[[PLACES:.*]] = train.read @places
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[PLACES]] {causal = true, scale = 1.000000e+00 : f32}
  func.func @places_causal(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %places = train.read @places : tensor<3x3xf32>
    %triangle = train.read @triangle : tensor<3x3xf32>
    %c = train.add %s, %places : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
    %l = train.add %c, %triangle : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A factor behind the mask is the mask's, too; what is subtracted is added with the other sign.
  // CHECK-LABEL: func.func @scaled_mask
  // CHECK: %[[SCALED:.*]] = train.scale %arg1 {factor = 1.250000e-01 : f32}
  // CHECK-NEXT: %[[NEGATIVE:.*]] = train.scale %{{.*}} {factor = -1.000000e+00 : f32}
  // CHECK-NEXT: %[[ADDED:.*]] = train.add %[[SCALED]], %[[NEGATIVE]]
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[ADDED]] {scale = 1.250000e-01 : f32}
  func.func @scaled_mask(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %places = train.read @places : tensor<3x3xf32>
    %a = train.add %s, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %f = train.scale %a {factor = 1.25e-1 : f32} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %l = train.sub %f, %places : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A negative factor would show what a mask hides.
  // CHECK-LABEL: func.func @turned_mask
  // CHECK-NOT: train.attention
  func.func @turned_mask(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %a = train.add %s, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %l = train.scale %a {factor = -1.0 : f32} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // The masks of one condition are made once.
  // CHECK-LABEL: func.func @made_once
  // CHECK: %[[ADDED:.*]] = train.select
  // CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg0, %arg0, %[[ADDED]], %arg1
  // CHECK-NOT: train.select
  // CHECK: train.attention %[[Y]], %[[Y]], %[[Y]], %[[ADDED]], %arg1
  func.func @made_once(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %low = train.read @low : tensor<f32>
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %f = train.select %m, %s, %low : (tensor<2x1x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %p = train.softmax %f {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %t = train.matmul %y, %y {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %g = train.select %m, %t, %low : (tensor<2x1x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %r = train.softmax %g {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %z = train.matmul %r, %y : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %z : tensor<2x3x8xf32>
  }

  // A constant that a factor makes large hides what a triangle of -1e9 times a hundredth leaves.
  // CHECK-LABEL: func.func @large_by_factor
  // CHECK-NOT: causal = true
  // CHECK: train.attention
  func.func @large_by_factor(%q: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %first = train.read @first : tensor<3xf32>
    %triangle = train.read @triangle : tensor<3x3xf32>
    %a = train.add %s, %first : (tensor<2x3x3xf32>, tensor<3xf32>) -> tensor<2x3x3xf32>
    %f = train.scale %a {factor = 1.0e+2 : f32} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %l = train.add %f, %triangle : (tensor<2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A negative factor before the masks, and a single number.
  // CHECK-LABEL: func.func @negative_before
  // CHECK: %[[ADDED:.*]] = train.add %arg1, %{{.*}} : (tensor<2x1x3xf32>, tensor<f32>) -> tensor<2x1x3xf32>
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[ADDED]] {scale = -1.000000e+00 : f32}
  func.func @negative_before(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %one = train.read @one : tensor<f32>
    %n = train.scale %s {factor = -1.0 : f32} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %a = train.add %n, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %l = train.add %a, %one : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // The guard of rows that see no key as PyTorch's legacy exporter writes it: a cast of a truth value is two negations more.
  // CHECK-LABEL: func.func @guarded
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %arg1 {scale = 1.000000e+00 : f32}
  func.func @guarded(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %zero = train.read @zero : tensor<f32>
    %zeros = train.read @zeros : tensor<2x3x3xf32>
    %l = train.add %s, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %e = train.compare %p, %p {predicate = 0 : i32} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %n = train.compare %e, %zero {predicate = 0 : i32} : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %c = train.compare %n, %zero {predicate = 0 : i32} : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %d = train.compare %c, %zero {predicate = 0 : i32} : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %g = train.select %d, %zeros, %p : (tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %g, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // The other way round it keeps what is no number.
  // CHECK-LABEL: func.func @not_guarded
  // CHECK-NOT: train.attention
  func.func @not_guarded(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %zeros = train.read @zeros : tensor<2x3x3xf32>
    %l = train.add %s, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %e = train.compare %p, %p {predicate = 0 : i32} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %g = train.select %e, %zeros, %p : (tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %g, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }

  // A mask that stands behind its second reader is made again.
  // CHECK-LABEL: func.func @other_order
  // CHECK: %[[A:.*]] = train.scale %arg1
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[A]]
  // CHECK: %[[B:.*]] = train.scale %arg1
  // CHECK-NEXT: train.attention %arg0, %arg0, %arg0, %[[B]]
  func.func @other_order(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
    %s0 = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %l0 = train.sub %s0, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p0 = train.softmax %l0 {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %s1 = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %l1 = train.sub %s1, %m : (tensor<2x3x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
    %p1 = train.softmax %l1 {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y1 = train.matmul %p1, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %y0 = train.matmul %p0, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y0, %y1 : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  }

  // The other infinity takes the whole row, and lets nothing go back to what it replaced either.
  // CHECK-LABEL: func.func @filled_by_most
  // CHECK: train.attention %arg0, %arg0, %arg0, %{{.*}}, %arg1
  func.func @filled_by_most(%q: tensor<2x3x8xf32>, %m: tensor<2x1x3xf32>) -> tensor<2x3x8xf32> {
    %s = train.matmul %q, %q {transpose_b = true} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
    %most = train.read @most : tensor<f32>
    %l = train.select %m, %s, %most : (tensor<2x1x3xf32>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
    %p = train.softmax %l {axis = 2 : i64} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %y = train.matmul %p, %q : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>
  }
}
