// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/samples.json threads=2 level=2" | FileCheck %s
// Times by kernels that were measured: each kind has one rate there, so that the figures can be checked by hand.

// CHECK-LABEL: func.func @step
func.func @step(%a: tensor<100x100xf32>, %b: tensor<100x100xf32>) -> tensor<100x100xf32> {
  // 2 * 100^3 operations at 20 GFLOP/s, at 10 where the first factor is stored the other way round.
  // CHECK: train.matmul {{.*}}seconds = {{1.0000000.*[Ee]-0?4|9.999999.*[Ee]-0?5}} : f64
  %p = train.matmul %a, %b {train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<100x100xf32> loc("p")
  // CHECK: train.matmul {{.*}}seconds = {{2.0000000.*[Ee]-0?4|1.999999.*[Ee]-0?4}} : f64
  %t = train.matmul %a, %p {transpose_a = true, train.forward = 1 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>, tensor<100x100xf32>) -> tensor<100x100xf32> loc("t")
  // An op's own samples: 80000 bytes at 2 GB/s.
  // CHECK: train.softmax {{.*}}seconds = {{4.0000000.*[Ee]-0?5|3.999999.*[Ee]-0?5}} : f64
  %s = train.softmax %t {axis = 1 : i64, train.forward = 2 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>) -> tensor<100x100xf32> loc("s")
  // Bound by its arithmetic: 10000 exponentials at 0.1 G/s and as many quotients at 1 G/s, while 120000 bytes take 15 to 120 us.
  // CHECK: train.fused{{.*}}seconds = {{1.1000000.*[Ee]-0?4|1.099999.*[Ee]-0?4}} : f64
  %e = train.fused (%s, %t : tensor<100x100xf32>, tensor<100x100xf32>) channels [] sums 0 -> (tensor<100x100xf32>) attributes {train.forward = 3 : i64, train.stage = 0 : i64} {
  ^bb0(%x: f32, %y: f32):
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %y : f32
    train.yield %1 : f32
  } loc("e")
  return %e : tensor<100x100xf32>
}
