// RUN: sluice-opt %s --sluice-home-variables=states=storage | FileCheck %s
// RUN: sluice-opt %s --sluice-home-variables | FileCheck %s --check-prefix=DEVICE
// RUN: sluice-opt %s "--sluice-home-variables=states=storage parameters=storage" | FileCheck %s --check-prefix=ALL
// RUN: sluice-opt %s --sluice-home-variables=states=storage --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s --check-prefix=SCHED
// RUN: sluice-opt %s "--sluice-home-variables=parameters=storage" --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s --check-prefix=SPARE
// RUN: sluice-opt %s "--sluice-home-variables=states=storage state-share=16" | FileCheck %s --check-prefix=HALF
// A momentum comes for its update and goes back after it, an average for evaluation, too. The small one is not worth a copy. A parameter comes for each op that
// reads it, is dropped after it, and goes back after its update; a vector stays, and so does what a function returns as it is.

// DEVICE-NOT: home
// CHECK: train.variable @w role(parameter) init(zero) : tensor<64x64xf32>{{$}}
// CHECK: train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// CHECK: train.variable @"w/average" role(optimizer) init(copy) : tensor<64x64xf32> {home = "storage"}
// CHECK: train.variable @"b/momentum" role(optimizer) init(zero) : tensor<64xf32>{{$}}
// CHECK: train.variable @"s/momentum" role(optimizer) init(zero) : tensor<4096xf32> {home = "storage"}
// CHECK: train.variable @"v/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// Half of what may leave: of four states of one size two, spread over them.
// HALF: train.variable @"w/momentum" {{.*}} {home = "storage"}
// HALF: train.variable @"w/average" {{.*}}xf32>{{$}}
// HALF: train.variable @"s/momentum" {{.*}} {home = "storage"}
// HALF: train.variable @"v/momentum" {{.*}}xf32>{{$}}
// ALL: train.variable @w role(parameter) init(zero) : tensor<64x64xf32> {home = "storage"}
// ALL: train.variable @b role(parameter) init(zero) : tensor<64xf32>{{$}}
// ALL: train.variable @s role(parameter) init(zero) : tensor<4096xf32>{{$}}
// ALL: train.variable @v role(parameter) init(zero) : tensor<64x64xf32> {home = "storage"}
// ALL: train.variable @fixed role(constant) init(file) : tensor<64x64xf32> {home = "storage"}
// ALL: train.variable @given role(constant) init(file) : tensor<64x64xf32>{{$}}
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"w/average" role(optimizer) init(copy) : tensor<64x64xf32>
train.variable @b role(parameter) init(zero) : tensor<64xf32>
train.variable @"b/momentum" role(optimizer) init(zero) : tensor<64xf32>
train.variable @s role(parameter) init(zero) : tensor<4096xf32>
train.variable @"s/momentum" role(optimizer) init(zero) : tensor<4096xf32>
train.variable @v role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"v/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @fixed role(constant) init(file) : tensor<64x64xf32>
train.variable @given role(constant) init(file) : tensor<64x64xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[H:.*]] = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[M:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[E:.*]] = train.read @"w/average" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[A:.*]] = train.prefetch %[[E]]
// CHECK-NEXT: %[[U:.*]]:3 = train.update(%{{.*}}, %{{.*}}, %[[M]], %[[A]]) rule(sgd)
// CHECK-NEXT: %[[B:.*]] = train.offload %[[U]]#1 {home = "storage", variable = @"w/momentum"}
// CHECK-NEXT: %[[C:.*]] = train.offload %[[U]]#2 {home = "storage", variable = @"w/average"}
// CHECK-NEXT: train.await %[[B]]
// CHECK-NEXT: train.await %[[C]]
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[EH:.*]] = train.read @"w/average" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[EP:.*]] = train.prefetch %[[EH]]
// CHECK-NEXT: train.matmul %{{.*}}, %[[EP]]

// ALL-LABEL: func.func @step
// ALL: %[[W1:.*]] = train.read @w : !train.host<tensor<64x64xf32>>
// ALL-NEXT: %[[P1:.*]] = train.prefetch %[[W1]]
// ALL-NEXT: train.matmul %{{.*}}, %[[P1]]
// ALL: %[[W2:.*]] = train.read @w : !train.host<tensor<64x64xf32>>
// ALL-NEXT: %[[P2:.*]] = train.prefetch %[[W2]]
// ALL-NEXT: %[[V2:.*]] = train.reshape %[[P2]]
// ALL-NEXT: train.matmul %{{.*}}, %[[V2]]
// ALL: %[[W3:.*]] = train.read @w : !train.host<tensor<64x64xf32>>
// ALL-NEXT: %[[P3:.*]] = train.prefetch %[[W3]]
// ALL: %[[U:.*]]:3 = train.update(%{{.*}}, %[[P3]], %{{.*}}, %{{.*}}) rule(sgd)
// ALL-NEXT: train.offload %[[U]]#0 {home = "storage", variable = @w}

// SCHED: %w_momentum = sched.buffer "w_momentum" storage bytes(16384) variable(@"w/momentum")
// SCHED: %w_momentum_back = sched.buffer "w_momentum_back" device bytes(16384) at({{[0-9]+}}) live([[FIRST:[0-9]+]], {{[0-9]+}})
// SCHED: sched.copy storage %w_momentum -> %w_momentum_back versions 0 -> 1
// SCHED: sched.run compute "update" {{.*}} versions [1, 0, 1, 1] -> [1, 2, 2]
// SCHED: sched.copy storage %w_momentum_back -> %w_momentum versions 2 -> 1
// SCHED: sched.wait compute

// Nothing is written home but by updates.
// SPARE: sched.program @step
// SPARE: sched.copy storage %w -> %w_back versions 0 -> 1
// SPARE-NOT: -> %w versions
// SPARE: sched.run compute "matmul" ins(%input0 : tensor<64x64xf32>, %w_back :
// SPARE-NOT: -> %w versions
// SPARE: sched.copy storage %w -> %w_back_2 versions 0 -> 1
// SPARE-NOT: -> %w versions
// SPARE: sched.copy storage %w -> %w_back_3 versions 0 -> 1
// SPARE: sched.run compute "update"
// SPARE: sched.copy storage %w_back_3 -> %w versions 2 -> 1
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %view = train.reshape %w : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %dx = train.matmul %d, %view {transpose_b = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %dx {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = train.read @"w/momentum" : tensor<64x64xf32>
  %e = train.read @"w/average" : tensor<64x64xf32>
  %w2:3 = train.update(%dw, %w, %m, %e) rule(sgd) {averaged, train.backward = 0 : i64} : tensor<64x64xf32>
  %db = train.sum_to %d {axes = array<i64: 0>, train.backward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64xf32>
  %b = train.read @b : tensor<64xf32>
  %bm = train.read @"b/momentum" : tensor<64xf32>
  %b2:2 = train.update(%db, %b, %bm) rule(sgd) {train.backward = 0 : i64} : tensor<64xf32>
  %flat = train.reshape %dw : (tensor<64x64xf32>) -> tensor<4096xf32>
  %s = train.read @s : tensor<4096xf32>
  %sm = train.read @"s/momentum" : tensor<4096xf32>
  %s2:2 = train.update(%flat, %s, %sm) rule(sgd) {train.backward = 0 : i64} : tensor<4096xf32>
  %v = train.read @v : tensor<64x64xf32>
  %vm = train.read @"v/momentum" : tensor<64x64xf32>
  %v2:2 = train.update(%dw, %v, %vm) rule(sgd) {train.backward = 0 : i64} : tensor<64x64xf32>
  return %loss : tensor<f32>
}

func.func @evaluate(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %e = train.read @"w/average" : tensor<64x64xf32>
  %vm = train.read @"v/momentum" : tensor<64x64xf32>
  %f = train.read @fixed : tensor<64x64xf32>
  %g = train.read @given : tensor<64x64xf32>
  %y = train.matmul %x, %e : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = train.matmul %f, %vm : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y, %z, %g : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
