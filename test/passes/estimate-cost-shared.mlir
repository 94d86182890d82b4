// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json profile=%S/inputs/measured-shared.json" | FileCheck %s
// A program measures what has one name together: the time is shared as the estimates are.

// Four calls of "insert" took 8 s, one of them is this op's.
// CHECK: train.concat {{.*}}train.cost = #train.cost<seconds = 2.000000e+00 : f64
// Two calls of "extract" took 4 s, for 1 and 3 parts of the bytes.
// CHECK: train.slice {{.*}}train.cost = #train.cost<seconds = 1.000000e+00 : f64
// CHECK: train.slice {{.*}}train.cost = #train.cost<seconds = 3.000000e+00 : f64
// CHECK-LABEL: func.func @evaluate
// What evaluation does of the same name takes as long as in a step.
// CHECK: train.concat {{.*}}train.cost = #train.cost<seconds = 2.000000e+00 : f64
func.func @step(%a: tensor<100x100xf32>, %b: tensor<100x300xf32>) -> (tensor<100x100xf32>, tensor<100x300xf32>) {
  %y = train.concat %a, %b {axis = 1 : i64, train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<100x100xf32>, tensor<100x300xf32>) -> tensor<100x400xf32> loc("cat")
  %da = train.slice %y {axis = 1 : i64, start = 0 : i64, length = 100 : i64, train.backward = 0 : i64, train.stage = 0 : i64} : (tensor<100x400xf32>) -> tensor<100x100xf32> loc("cat")
  %db = train.slice %y {axis = 1 : i64, start = 100 : i64, length = 300 : i64, train.backward = 0 : i64, train.stage = 0 : i64} : (tensor<100x400xf32>) -> tensor<100x300xf32> loc("cat")
  return %da, %db : tensor<100x100xf32>, tensor<100x300xf32>
}
func.func @evaluate(%a: tensor<100x100xf32>, %b: tensor<100x300xf32>) -> tensor<100x400xf32> {
  %y = train.concat %a, %b {axis = 1 : i64} : (tensor<100x100xf32>, tensor<100x300xf32>) -> tensor<100x400xf32> loc("cat")
  return %y : tensor<100x400xf32>
}
