// RUN: sluice-opt %s --sluice-build-backward --sluice-split-updates=above=10000 | FileCheck %s
// RUN: sed s/adamw/sgd/ %s | sluice-opt --sluice-build-backward --sluice-split-updates=above=10000 | sluice-opt | FileCheck %s --check-prefix=SGD
// RUN: sluice-opt %s --sluice-build-backward --sluice-split-step=parts=2 --sluice-split-updates=above=30000 | FileCheck %s --check-prefix=BOTH
// RUN: not sluice-opt %s --sluice-pipeline="until=planned device=v100-pcie level=3 budget=290000" 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: sluice-opt %s --sluice-pipeline="until=planned device=v100-pcie level=3 budget=290000 weights-above=10000" | FileCheck %s --check-prefix=ROWS
// RUN: sed s/adamw/sgd/ %s | sluice-opt --sluice-pipeline="until=placed weights-above=10000" --sluice-verify-schedule | FileCheck %s --check-prefix=PLACED

// Three parts of 52 rows, since these begin at multiples of 256 bytes, and what is left; updates are a chain. The convolution goes by its output channels, and so
// does its bias, whose gradient is joined. The last weight has 8,000 bytes.
// CHECK: train.parts = "2 gradients of weights in rows of 10000 bytes"
// CHECK-LABEL: func.func @step
// CHECK: %[[DY1:.*]] = train.slice %[[DY:.*]] {axis = 1 : i64, length = 52 : i64, start = 0 : i64, train.backward = [[N:.*]] : i64} : (tensor<6x200xf32>)
// CHECK-NEXT: %[[D1:.*]] = train.matmul %[[DY1]], %[[X:.*]] {train.backward = [[N]] : i64, transpose_a = true} : (tensor<6x52xf32>, tensor<6x48xf32>) -> tensor<52x48xf32>
// CHECK-NEXT: %[[U1:.*]]:3 = train.update(%[[D1]], %[[W:.*]], %[[M:.*]], %[[V:.*]]) rule(adamw) {first = 0 : i64, train.backward = [[N]] : i64} : tensor<52x48xf32> of tensor<200x48xf32>
// CHECK: %[[D2:.*]] = train.matmul
// CHECK-NEXT: %[[U2:.*]]:3 = train.update(%[[D2]], %[[U1]]#0, %[[U1]]#1, %[[U1]]#2) rule(adamw) {first = 52 : i64
// CHECK: train.update({{.*}}, %[[U2]]#0, %[[U2]]#1, %[[U2]]#2) rule(adamw) {first = 104 : i64
// CHECK: train.slice %[[DY]] {axis = 1 : i64, length = 44 : i64, start = 156 : i64
// CHECK: train.update({{.*}} {first = 156 : i64, {{.*}} : tensor<44x48xf32> of tensor<200x48xf32>
// CHECK: train.slice {{.*}} {axis = 1 : i64, length = 24 : i64, start = 0 : i64
// CHECK-NEXT: %[[K1:.*]], %[[B1:.*]] = train.conv_backward_weight {{.*}} -> (tensor<24x8x3x3xf32>, tensor<24xf32>)
// CHECK-NEXT: train.update(%[[K1]]
// CHECK: %[[K2:.*]], %[[B2:.*]] = train.conv_backward_weight {{.*}} -> (tensor<24x8x3x3xf32>, tensor<24xf32>)
// CHECK-NEXT: train.update(%[[K2]], {{.*}} {first = 24 : i64
// CHECK-NEXT: %[[B:.*]] = train.concat %[[B1]], %[[B2]]
// CHECK: train.update(%[[B]],

// SGD: train.update({{.*}} rule(sgd) {first = 0 : i64, train.backward = {{.*}} : i64} : tensor<52x48xf32> of tensor<200x48xf32>

// BOTH: train.parts = "a batch of 6 in 2 parts, 1 gradient of weights in rows of 30000 bytes"
// BOTH: rule(adamw) {first = 0 : i64, {{.*}}} : tensor<100x48xf32> of tensor<200x48xf32>

// WHOLE: a budget of 290000 bytes is too small
// ROWS: budget = 290000, arena = 27{{[0-9]+}},

// Kernels are given pieces of the slots; each write counts as one of the whole.
// PLACED: sched.run compute "update" ins(%{{.*}} : tensor<52x48xf32>, %w at 9984 : tensor<52x48xf32>, %w_momentum at 9984 : tensor<52x48xf32>) outs(%w at 9984 : tensor<52x48xf32>, %w_momentum at 9984 : tensor<52x48xf32>) versions [1, 1, 1] -> [2, 2]

module attributes {train.loss_inputs = ["target"], train.optimizer = "adamw"} {
train.variable @k role(parameter) init(zero) : tensor<48x8x3x3xf32>
train.variable @b role(parameter) init(zero) : tensor<48xf32>
train.variable @w role(parameter) init(zero) : tensor<200x48xf32>
train.variable @v role(parameter) init(zero) : tensor<10x200xf32>
func.func @step(%x: tensor<6x8x4x4xf32>, %target: tensor<6x10xf32>) -> tensor<f32> {
  %k = train.read @k : tensor<48x8x3x3xf32>
  %b = train.read @b : tensor<48xf32>
  %w = train.read @w : tensor<200x48xf32>
  %v = train.read @v : tensor<10x200xf32>
  %c = train.conv %x, %k, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64}
      : (tensor<6x8x4x4xf32>, tensor<48x8x3x3xf32>, tensor<48xf32>) -> tensor<6x48x2x2xf32>
  %p = train.average_pool %c {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
      : (tensor<6x48x2x2xf32>) -> tensor<6x48x1x1xf32>
  %h = train.reshape %p : (tensor<6x48x1x1xf32>) -> tensor<6x48xf32>
  %z = train.matmul %h, %w {transpose_b = true} : (tensor<6x48xf32>, tensor<200x48xf32>) -> tensor<6x200xf32>
  %y = train.matmul %z, %v {transpose_b = true} : (tensor<6x200xf32>, tensor<10x200xf32>) -> tensor<6x10xf32>
  %loss = train.mse %y, %target : (tensor<6x10xf32>, tensor<6x10xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
