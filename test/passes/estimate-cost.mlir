// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json threads=2 level=2" | FileCheck %s
// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json threads=3 level=2" | FileCheck %s --check-prefix=THREE
// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json profile=%S/inputs/measured.json" | FileCheck %s --check-prefix=MEASURED
// A device of 1 GFLOP/s, of which convolutions reach half, and 1 GB/s, so that the figures can be checked by hand.
// Workspaces are those of programs for two threads of any processor.

train.variable @w role(parameter) init(zero) : tensor<100x100xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<100x100xf32>

// CHECK-LABEL: func.func @step
// 2 * 100^3 operations; 3 * 40000 bytes take less. Each thread packs factors of its own.
// CHECK: train.matmul {{.*}}train.cost = #train.cost<seconds = 2.000000e-03 : f64, workspace = 76800>
// THREE: train.matmul {{.*}}workspace = 115200>
// MEASURED: train.matmul {{.*}}train.cost = #train.cost<seconds = 2.500000e-01 : f64
// The loss reads 80000 bytes and writes 4; its gradient reads 80000 and writes 40000.
// CHECK: train.mse {{.*}}train.cost = #train.cost<seconds = 8.000400e-05 : f64
// CHECK: train.loss_backward {{.*}}train.cost = #train.cost<seconds = 1.200000e-04 : f64
// An update reads the gradient, and reads and writes parameter and momentum: 5 * 40000 bytes.
// CHECK: train.update({{.*}}train.cost = #train.cost<seconds = 2.000000e-04 : f64>
// Views cost nothing and carry nothing.
// CHECK-LABEL: func.func @evaluate
// CHECK: train.reshape
// CHECK-NOT: train.cost
// 2 * (2*4*6*6) * 3*3*3 operations at half the peak
// CHECK: train.conv {{.*}}train.cost = #train.cost<seconds = 3.110400e-05 : f64, workspace = 10816>
func.func @step(%x: tensor<100x100xf32>, %target: tensor<100x100xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<100x100xf32>
  %y = train.matmul %x, %w {train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<100x100xf32> loc("/fc/Gemm")
  %loss = train.mse %y, %target {train.forward = 1 : i64, train.stage = 1 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<f32>
  %dy = train.loss_backward mse %y, %target {train.backward = 1 : i64, train.stage = 1 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<100x100xf32>
  %dw = train.matmul %x, %dy {transpose_a = true, train.backward = 0 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<100x100xf32> loc("/other/Gemm")
  %old1 = train.read @w : tensor<100x100xf32>
  %old1_0 = train.read @"w/momentum" : tensor<100x100xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64, train.stage = 0 : i64} : tensor<100x100xf32>
  return %loss : tensor<f32>
}
func.func @evaluate(%x: tensor<2x192xf32>, %k: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
  %v = train.reshape %x : (tensor<2x192xf32>) -> tensor<2x3x8x8xf32>
  %c = train.conv %v, %k {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return %c : tensor<2x4x6x6xf32>
}
