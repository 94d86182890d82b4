// RUN: sluice-opt %s --split-input-file --sluice-build-backward --sluice-split=parts=3 | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-build-backward --sluice-split=parts=1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=train.slice
// Rows of a large loss come one part after the other, forward and backward, between what others make forward and their gradients. 10 rows in three
// parts are 3, 3 and 4.
// WHOLE: train.softmax_cross_entropy {{.*}} : (tensor<10x521xf32>, tensor<10xi64>)

module attributes {train.outputs = [#train.output<name = "scores", loss = "token-cross-entropy", target = "target", kept = 1>, #train.output<name = "other", kept = 0>, #train.output<name = "chances", kept = 2>, #train.output<name = "compared", target = "target", kept = 2>], train.loss_inputs = ["target"]} {
train.variable @w role(parameter) init(zero) : tensor<521x32xf32>
train.variable @b role(parameter) init(zero) : tensor<521xf32>
train.variable @g role(parameter) init(zero) : tensor<32xf32>

// CHECK: train.outputs = [#train.output<name = "scores", loss = "token-cross-entropy", target = "target">, #train.output<name = "other", kept = 0>, #train.output<name = "compared", target = "target">], train.parts = "10x521 scores of '' in 3 parts"
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<2x5x32xf32>, %target: tensor<10xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<521x32xf32>
  %b = train.read @b : tensor<521xf32>
  %g = train.read @g : tensor<32xf32>
  // CHECK: %[[H:.*]] = train.mul %{{.*}} {train.forward = 0 : i64}
  %h = train.mul %x, %g : (tensor<2x5x32xf32>, tensor<32xf32>) -> tensor<2x5x32xf32>
  %y = train.matmul %h, %w {transpose_b = true} : (tensor<2x5x32xf32>, tensor<521x32xf32>) -> tensor<2x5x521xf32>
  %z = train.add %y, %b : (tensor<2x5x521xf32>, tensor<521xf32>) -> tensor<2x5x521xf32>
  %l = train.reshape %z : (tensor<2x5x521xf32>) -> tensor<10x521xf32>
  %loss = train.softmax_cross_entropy %l, %target {ignore_index = -100 : i64} : (tensor<10x521xf32>, tensor<10xi64>) -> tensor<f32>
  // CHECK-NOT: train.forward
  // CHECK: %[[ALL:.*]] = train.reshape %[[H]] {train.backward = 0 : i64} : (tensor<2x5x32xf32>) -> tensor<10x32xf32>
  // CHECK-NEXT: %[[X1:.*]] = train.slice %[[ALL]] {axis = 0 : i64, length = 3 : i64, start = 0 : i64, train.backward = 0 : i64}
  // CHECK-NEXT: %[[Y1:.*]] = train.matmul %[[X1]], %[[W:.*]] {train.backward = 0 : i64, transpose_b = true} : (tensor<3x32xf32>, tensor<521x32xf32>) -> tensor<3x521xf32>
  // CHECK-NEXT: %[[Z1:.*]] = train.add %[[Y1]], %{{.*}} {train.backward = 0 : i64} : (tensor<3x521xf32>, tensor<521xf32>) -> tensor<3x521xf32>
  // CHECK-NEXT: %[[L1:.*]] = train.softmax_cross_entropy %[[Z1]], %[[T:.*]] {first = 0 : i64, ignore_index = -100 : i64, train.backward = 0 : i64} : (tensor<3x521xf32>, tensor<10xi64>) -> tensor<f32>
  // CHECK-NEXT: %[[D1:.*]] = train.loss_backward softmax_cross_entropy %[[Z1]], %[[T]] {first = 0 : i64, ignore_index = -100 : i64, train.backward = 0 : i64} : (tensor<3x521xf32>, tensor<10xi64>) -> tensor<3x521xf32>
  // CHECK-NEXT: %[[B1:.*]] = train.sum_to %[[D1]] {train.backward = 0 : i64} : (tensor<3x521xf32>) -> tensor<521xf32>
  // CHECK-NEXT: %[[W1:.*]] = train.matmul %[[D1]], %[[X1]] {train.backward = 0 : i64, transpose_a = true} : (tensor<3x521xf32>, tensor<3x32xf32>) -> tensor<521x32xf32>
  // CHECK-NEXT: %[[H1:.*]] = train.matmul %[[D1]], %[[W]] {train.backward = 0 : i64} : (tensor<3x521xf32>, tensor<521x32xf32>) -> tensor<3x32xf32>
  // CHECK-NEXT: %[[X2:.*]] = train.slice %[[ALL]] {axis = 0 : i64, length = 3 : i64, start = 3 : i64, train.backward = 0 : i64}
  // CHECK: %[[L2:.*]] = train.softmax_cross_entropy {{.*}} {first = 3 : i64,
  // CHECK-NEXT: %[[L12:.*]] = train.add %[[L1]], %[[L2]] {train.backward = 0 : i64}
  // CHECK: %[[B2:.*]] = train.sum_to
  // CHECK-NEXT: %[[B12:.*]] = train.add %[[B1]], %[[B2]]
  // CHECK-NEXT: %[[W2:.*]] = train.matmul %{{.*}}, %[[X2]], %[[W1]] {train.backward = 0 : i64, transpose_a = true}
  // CHECK-NEXT: %[[H2:.*]] = train.matmul
  // CHECK-NEXT: train.slice %[[ALL]] {axis = 0 : i64, length = 4 : i64, start = 6 : i64, train.backward = 0 : i64}
  // CHECK: %[[L3:.*]] = train.softmax_cross_entropy {{.*}} {first = 6 : i64,
  // CHECK-NEXT: %[[L123:.*]] = train.add %[[L12]], %[[L3]]
  // CHECK: %[[B123:.*]] = train.add %[[B12]],
  // CHECK-NEXT: %[[W3:.*]] = train.matmul {{.*}}, %[[W2]] {train.backward = 0 : i64, transpose_a = true}
  // CHECK-NEXT: %[[H3:.*]] = train.matmul
  // CHECK-NEXT: %[[DH:.*]] = train.concat %[[H1]], %[[H2]], %[[H3]] {axis = 0 : i64, train.backward = 0 : i64}
  // CHECK-NEXT: train.reshape %[[DH]] {train.backward = 0 : i64} : (tensor<10x32xf32>) -> tensor<2x5x32xf32>
  // CHECK-NOT: train.loss_backward
  // CHECK: train.update(%[[B123]]
  // CHECK: train.update(%[[W3]]
  // CHECK: return %[[L123]]
  return %loss : tensor<f32>
}

// Nothing but the loss is left of the scores.
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: -> (tensor<f32>, tensor<10x32xf32>)
// CHECK-NOT: count_correct
// CHECK-NOT: x521xf32>) -> tensor<2x5x521xf32>
// CHECK-NOT: train.backward
// CHECK-COUNT-3: train.softmax_cross_entropy
// CHECK-NEXT: %[[E:.*]] = train.add {{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[E]], %{{.*}} : tensor<f32>, tensor<10x32xf32>
func.func @evaluate(%x: tensor<10x32xf32>, %target: tensor<10xi64>) -> (tensor<f32>, tensor<i64>, tensor<10x32xf32>, tensor<2x5x521xf32>, tensor<10x521xf32>) {
  %w = train.read @w : tensor<521x32xf32>
  %h = train.gelu %x : (tensor<10x32xf32>) -> tensor<10x32xf32>
  %y = train.matmul %h, %w {transpose_b = true} : (tensor<10x32xf32>, tensor<521x32xf32>) -> tensor<10x521xf32>
  %loss = train.softmax_cross_entropy %y, %target : (tensor<10x521xf32>, tensor<10xi64>) -> tensor<f32>
  %n = train.count_correct %y, %target : (tensor<10x521xf32>, tensor<10xi64>) -> tensor<i64>
  %scores = train.reshape %y : (tensor<10x521xf32>) -> tensor<2x5x521xf32>
  %chances = train.softmax %y {axis = 1 : i64} : (tensor<10x521xf32>) -> tensor<10x521xf32>
  return %loss, %n, %h, %scores, %chances : tensor<f32>, tensor<i64>, tensor<10x32xf32>, tensor<2x5x521xf32>, tensor<10x521xf32>
}
}

// -----

// Soft caps and scales between product and loss; the loss is one of two, whose sum and its weight are there when the parts begin or come after them;
// a bias over broadcast dimensions loses them.
train.variable @w role(parameter) init(zero) : tensor<32x100xf32>
train.variable @b role(parameter) init(zero) : tensor<1x1x100xf32>
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<2x6x32xf32>, %target: tensor<12xi64>, %wanted: tensor<2x6x32xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<32x100xf32>
  %b = train.read @b : tensor<1x1x100xf32>
  // CHECK: %[[H:.*]] = train.gelu
  %h = train.gelu %x : (tensor<2x6x32xf32>) -> tensor<2x6x32xf32>
  %y = train.matmul %h, %w : (tensor<2x6x32xf32>, tensor<32x100xf32>) -> tensor<2x6x100xf32>
  %z = train.add %y, %b : (tensor<2x6x100xf32>, tensor<1x1x100xf32>) -> tensor<2x6x100xf32>
  %c = train.tanh %z : (tensor<2x6x100xf32>) -> tensor<2x6x100xf32>
  %s = train.scale %c {factor = 30.0 : f32} : (tensor<2x6x100xf32>) -> tensor<2x6x100xf32>
  %l = train.reshape %s : (tensor<2x6x100xf32>) -> tensor<12x100xf32>
  %first = train.softmax_cross_entropy %l, %target : (tensor<12x100xf32>, tensor<12xi64>) -> tensor<f32>
  %half = train.scale %first {factor = 0.5 : f32} : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[OTHER:.*]] = train.mse {{.*}} {train.forward = 1 : i64}
  %other = train.mse %h, %wanted : (tensor<2x6x32xf32>, tensor<2x6x32xf32>) -> tensor<f32>
  %loss = train.add %half, %other : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[ONE:.*]] = train.read @"train/one"
  // CHECK: %[[SHARE:.*]] = train.scale %[[ONE]] {factor = 5.000000e-01 : f32
  // CHECK: %[[ROW:.*]] = train.reshape %{{.*}} : (tensor<1x1x100xf32>) -> tensor<100xf32>
  // CHECK: train.add %{{.*}}, %[[ROW]] {{.*}} : (tensor<4x100xf32>, tensor<100xf32>) -> tensor<4x100xf32>
  // CHECK-NEXT: %[[C:.*]] = train.tanh
  // CHECK-NEXT: train.scale {{.*}} -> tensor<4x100xf32>
  // CHECK: %[[D:.*]] = train.loss_backward
  // CHECK-NEXT: train.mul %[[D]], %[[SHARE]] {{.*}} -> tensor<4x100xf32>
  // CHECK-NEXT: train.scale {{.*}} -> tensor<4x100xf32>
  // CHECK-NEXT: train.tanh_backward %{{.*}}, %[[C]]
  // CHECK-NEXT: train.sum_to {{.*}} : (tensor<4x100xf32>) -> tensor<100xf32>
  // CHECK: %[[DB:.*]] = train.reshape %{{.*}} : (tensor<100xf32>) -> tensor<1x1x100xf32>
  // CHECK: %[[HALF:.*]] = train.scale %{{.*}} {factor = 5.000000e-01 : f32, train.backward = 0 : i64} : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[LOSS:.*]] = train.add %[[HALF]], %[[OTHER]] {train.backward = 1 : i64}
  // CHECK: train.update(%[[DB]]
  // CHECK: return %[[LOSS]]
  return %loss : tensor<f32>
}
