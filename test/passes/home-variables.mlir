// RUN: sluice-opt %s --sluice-home-variables=home=storage | FileCheck %s
// RUN: sluice-opt %s --sluice-home-variables | FileCheck %s --check-prefix=DEVICE
// RUN: sluice-opt %s --sluice-home-variables=home=storage --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s --check-prefix=SCHED
// A momentum comes for its update and goes back after it. The average is evaluation's as well, the small one is not worth a copy, and a state that
// something else reads stays.

// DEVICE-NOT: home
// CHECK: train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// CHECK: train.variable @"w/average" role(optimizer) init(copy) : tensor<64x64xf32>{{$}}
// CHECK: train.variable @"b/momentum" role(optimizer) init(zero) : tensor<64xf32>{{$}}
// CHECK: train.variable @"v/momentum" role(optimizer) init(zero) : tensor<64x64xf32>{{$}}
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"w/average" role(optimizer) init(copy) : tensor<64x64xf32>
train.variable @b role(parameter) init(zero) : tensor<64xf32>
train.variable @"b/momentum" role(optimizer) init(zero) : tensor<64xf32>
train.variable @v role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"v/momentum" role(optimizer) init(zero) : tensor<64x64xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[H:.*]] = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[M:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[U:.*]]:3 = train.update(%{{.*}}, %{{.*}}, %[[M]], %{{.*}}) rule(sgd)
// CHECK-NEXT: %[[B:.*]] = train.offload %[[U]]#1 {home = "storage", variable = @"w/momentum"}
// CHECK-NEXT: train.await %[[B]]
// CHECK-NOT: train.prefetch

// SCHED: %w_momentum = sched.buffer "w_momentum" storage bytes(16384) variable(@"w/momentum") at(0)
// SCHED: %w_momentum_back = sched.buffer "w_momentum_back" device bytes(16384) at({{[0-9]+}}) live([[FIRST:[0-9]+]], {{[0-9]+}})
// SCHED: sched.copy storage %w_momentum -> %w_momentum_back versions 0 -> 1
// SCHED: sched.run compute "update" {{.*}} versions [1, 0, 1, 0] -> [1, 2, 1]
// SCHED: sched.copy storage %w_momentum_back -> %w_momentum versions 2 -> 1
// SCHED: sched.wait compute
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %d {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = train.read @"w/momentum" : tensor<64x64xf32>
  %e = train.read @"w/average" : tensor<64x64xf32>
  %w2:3 = train.update(%dw, %w, %m, %e) rule(sgd) {averaged, train.backward = 0 : i64} : tensor<64x64xf32>
  %db = train.sum_to %d {axes = array<i64: 0>, train.backward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64xf32>
  %b = train.read @b : tensor<64xf32>
  %bm = train.read @"b/momentum" : tensor<64xf32>
  %b2:2 = train.update(%db, %b, %bm) rule(sgd) {train.backward = 0 : i64} : tensor<64xf32>
  %v = train.read @v : tensor<64x64xf32>
  %vm = train.read @"v/momentum" : tensor<64x64xf32>
  %v2:2 = train.update(%dw, %v, %vm) rule(sgd) {train.backward = 0 : i64} : tensor<64x64xf32>
  return %loss : tensor<f32>
}

func.func @evaluate(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %e = train.read @"w/average" : tensor<64x64xf32>
  %vm = train.read @"v/momentum" : tensor<64x64xf32>
  %y = train.matmul %x, %e : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = train.matmul %x, %vm : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
}
