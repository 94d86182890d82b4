// RUN: sluice-opt %s --sluice-build-backward --sluice-split-step=parts=2 | FileCheck %s
// RUN: sluice-opt %s --sluice-build-backward --sluice-split-step=parts=1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=train.slice
// RUN: sluice-opt %s --sluice-build-backward "--sluice-split-step=parts=2 above=30000" | FileCheck %s --check-prefix=LARGE
// Five samples in two parts are 2 and 3. BatchNorm's statistics are of all of them: the second sweep begins when both parts have come so far, and normalizes each by the same mean. The loss is told its rows.
// WHOLE: train.batch_norm

module attributes {train.loss_inputs = ["target"]} {
train.variable @w role(parameter) init(zero) : tensor<4x3x3x3xf32>
train.variable @s role(parameter) init(zero) : tensor<4xf32>
train.variable @b role(parameter) init(zero) : tensor<4xf32>
train.variable @v role(parameter) init(zero) : tensor<2x1024xf32>

// CHECK: train.parts = "a batch of 5 in 2 parts"
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<5x3x16x16xf32>, %[[T:[a-z0-9]*]]: tensor<5xi64>
// LARGE-LABEL: func.func @step
func.func @step(%x: tensor<5x3x16x16xf32>, %target: tensor<5xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<4x3x3x3xf32>
  %s = train.read @s : tensor<4xf32>
  %b = train.read @b : tensor<4xf32>
  %v = train.read @v : tensor<2x1024xf32>
  // CHECK: %[[X1:.*]] = train.slice %[[X]] {axis = 0 : i64, length = 2 : i64, start = 0 : i64, train.forward = 0 : i64}
  // CHECK: %[[Y1:.*]] = train.conv %[[X1]], %[[W:[0-9]+]] {{.*}} : (tensor<2x3x16x16xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x16x16xf32>
  // CHECK-NEXT: %[[M1:.*]], %[[R1:.*]] = train.batch_norm_statistics %[[Y1]]
  // CHECK-NEXT: %[[X2:.*]] = train.slice %[[X]] {axis = 0 : i64, length = 3 : i64, start = 2 : i64, train.forward = 3 : i64}
  // CHECK-NEXT: %[[Y2:.*]] = train.conv %[[X2]], %[[W]] {{.*}} -> tensor<3x4x16x16xf32>
  // CHECK-NEXT: %[[M2:.*]], %[[R2:.*]] = train.batch_norm_statistics %[[Y2]]
  // CHECK-NEXT: %[[A1:.*]] = train.scale %[[M1]] {factor = 4.000000e-01 : f32
  // CHECK-NEXT: %[[A2:.*]] = train.scale %[[M2]] {factor = 6.000000e-01 : f32
  // CHECK-NEXT: %[[M:.*]] = train.add %[[A1]], %[[A2]]
  // CHECK: %[[Q1:.*]] = train.mul %[[R1]], %[[R1]]
  // CHECK: train.sub %[[M1]], %[[M]]
  // CHECK: train.sqrt
  // CHECK-NEXT: %[[R:.*]] = train.reciprocal
  // LARGE: train.conv {{.*}} -> tensor<3x4x16x16xf32>
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<5x3x16x16xf32>, tensor<4x3x3x3xf32>) -> tensor<5x4x16x16xf32>
  // CHECK: %[[Z1:.*]] = train.normalize %[[Y1]], %[[M]], %[[R]]
  // CHECK: train.relu %[[Z1]]
  // CHECK: %[[L1:.*]] = train.softmax_cross_entropy %[[S1:.*]], %[[T]] {first = 0 : i64
  // CHECK: %[[D1:.*]] = train.loss_backward softmax_cross_entropy %[[S1]], %[[T]] {first = 0 : i64, train.backward
  // CHECK: %[[DW1:.*]] = train.matmul %[[D1]], %{{.*}} {train.backward = {{.*}} transpose_a = true}
  // CHECK: %[[C1:.*]], %[[B1:.*]] = train.normalize_reduce
  // CHECK: train.normalize %[[Y2]], %[[M]], %[[R]], {{.*}} {train.backward
  // CHECK: %[[L2:.*]] = train.softmax_cross_entropy %[[S2:.*]], %[[T]] {first = 2 : i64, train.backward
  // CHECK-NEXT: %[[L:.*]] = train.add %[[L1]], %[[L2]]
  // CHECK: %[[DW:.*]] = train.matmul %{{.*}}, %{{.*}}, %[[DW1]] {train.backward = {{.*}} transpose_a = true}
  // CHECK: train.update(%[[DW]]
  // CHECK: train.normalize_backward
  // LARGE: train.concat {{.*}} -> tensor<5x4x16x16xf32>
  // LARGE: train.matmul {{.*}} : (tensor<5x1024xf32>, tensor<2x1024xf32>) -> tensor<5x2xf32>
  // LARGE-NOT: first =
  %n, %mean, %rstd = train.batch_norm %y, %s, %b {epsilon = 1.0e-5 : f32} : (tensor<5x4x16x16xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x16x16xf32>, tensor<4xf32>, tensor<4xf32>)
  %r = train.relu %n : (tensor<5x4x16x16xf32>) -> tensor<5x4x16x16xf32>
  %f = train.reshape %r : (tensor<5x4x16x16xf32>) -> tensor<5x1024xf32>
  %l = train.matmul %f, %v {transpose_b = true} : (tensor<5x1024xf32>, tensor<2x1024xf32>) -> tensor<5x2xf32>
  %loss = train.softmax_cross_entropy %l, %target : (tensor<5x2xf32>, tensor<5xi64>) -> tensor<f32>
  // CHECK: return %[[L]]
  return %loss : tensor<f32>
}
}
