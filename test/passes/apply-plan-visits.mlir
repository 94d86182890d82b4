// RUN: sluice-opt %s --sluice-apply-plan --split-input-file --verify-diagnostics | FileCheck %s
// RUN: sluice-opt %s --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=PLACED
// A state that is at home in another arena comes when the plan says, not right before its update, and its copy home is awaited as late.

// PLACED: sched.program @step
module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}

// CHECK-LABEL: func.func @step
// CHECK: train.matmul
// CHECK-NEXT: train.mse
// CHECK-NEXT: %[[H:.*]] = train.read @"w/momentum"
// CHECK-NEXT: train.prefetch %[[H]] {train.offsets = array<i64: 164608, -1>}
// CHECK-NEXT: train.loss_backward
// CHECK: train.update
// CHECK-NEXT: %[[B:.*]] = train.offload
// CHECK-NEXT: train.sum_to
// CHECK-NEXT: train.await %[[B]]
// CHECK-NEXT: return
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<f32>, tensor<64xf32>) attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "w_momentum_back", action = offload, bytes = 16384
                absences [<leave_after = 4, free_before = 6, return_after = 1, needed_by = 4>]>]
    places [<storage = "w_momentum_back", step = 2, offset = 164608>]>} {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %d {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
  %m = train.prefetch %h : (!train.host<tensor<64x64xf32>>) -> tensor<64x64xf32>
  %w2:2 = train.update(%dw, %w, %m) rule(sgd) {train.backward = 0 : i64} : tensor<64x64xf32>
  %b = train.offload %w2#1 {home = "storage", variable = @"w/momentum"} : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  train.await %b : (!train.host<tensor<64x64xf32>>) -> ()
  %db = train.sum_to %d {axes = array<i64: 0>, train.backward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %loss, %db : tensor<f32>, tensor<64xf32>
}
}

// -----

module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// expected-error @below {{the plan lets 'w_momentum_back' come after op 2 and leave before op 4 of 5, and it is not there when it is used}}
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "w_momentum_back", action = offload, bytes = 16384
                absences [<leave_after = 3, free_before = 4, return_after = 2, needed_by = 3>]>]>} {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %d {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
  %m = train.prefetch %h : (!train.host<tensor<64x64xf32>>) -> tensor<64x64xf32>
  %w2:2 = train.update(%dw, %w, %m) rule(sgd) {train.backward = 0 : i64} : tensor<64x64xf32>
  %b = train.offload %w2#1 {home = "storage", variable = @"w/momentum"} : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  train.await %b : (!train.host<tensor<64x64xf32>>) -> ()
  return %loss : tensor<f32>
}
}
