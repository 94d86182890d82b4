// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json target=cuda" | FileCheck %s
// Products run at the rate of the precision: 2 * 64^3 operations at 4 GFLOP/s.

module attributes {train.precision = "tf32"} {
// CHECK: train.matmul {{.*}}train.cost = #train.cost<seconds = 1.310720e-04 : f64
func.func @tf32(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = train.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
}
