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

// -----

module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// expected-error @below {{the plan wants to offload 'w_momentum_back' with fp16, 1 times; it is at home elsewhere, comes once a step and goes as it is}}
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "w_momentum_back", action = offload, codec = "fp16", bytes = 16384
                absences [<leave_after = 4, free_before = 5, return_after = 3, needed_by = 4>]>]>} {
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

// -----

module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// expected-error @below {{the plan wants to offload 'w_momentum_back' between ops 0 and 4; it is at home elsewhere, and away around the end of the step alone}}
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "w_momentum_back", action = offload, bytes = 16384
                absences [<leave_after = 0, free_before = 1, return_after = 3, needed_by = 4>]>]>} {
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

// -----

module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
// expected-error @below {{the plan wants to offload 'matmul_y' around the end of the step, which is for states that are at home elsewhere}}
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "matmul_y", action = offload, bytes = 16384
                absences [<leave_after = 3, free_before = 4, return_after = 0, needed_by = 1>]>]>} {
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

// -----

// Of two states of one update the one whose bytes are free first goes first, as plans are simulated.
module {
train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/exp_avg" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}
train.variable @"w/exp_avg_sq" role(optimizer) init(zero) : tensor<64x64xf32> {home = "storage"}

// CHECK: train.update
// CHECK-NEXT: %[[SECOND:.*]] = train.offload {{.*}}@"w/exp_avg_sq"
// CHECK-NEXT: %[[FIRST:.*]] = train.offload {{.*}}@"w/exp_avg"
// CHECK-NEXT: train.await %[[SECOND]]
// CHECK-NEXT: train.sum_to
// CHECK-NEXT: train.await %[[FIRST]]
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<f32>, tensor<64xf32>) attributes {train.plan = #train.plan<strategy = "greedy", budget = 300000, arena = 181248, home = "host"
    decisions [<storage = "w_exp_avg_back", action = offload, bytes = 16384
                absences [<leave_after = 4, free_before = 6, return_after = 3, needed_by = 4>]>,
               <storage = "w_exp_avg_sq_back", action = offload, bytes = 16384
                absences [<leave_after = 4, free_before = 5, return_after = 3, needed_by = 4>]>]>} {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %d {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = train.read @"w/exp_avg" : !train.host<tensor<64x64xf32>>
  %m = train.prefetch %h : (!train.host<tensor<64x64xf32>>) -> tensor<64x64xf32>
  %g = train.read @"w/exp_avg_sq" : !train.host<tensor<64x64xf32>>
  %v = train.prefetch %g : (!train.host<tensor<64x64xf32>>) -> tensor<64x64xf32>
  %w2:3 = train.update(%dw, %w, %m, %v) rule(adam) {train.backward = 0 : i64} : tensor<64x64xf32>
  %b = train.offload %w2#1 {home = "storage", variable = @"w/exp_avg"} : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  %c = train.offload %w2#2 {home = "storage", variable = @"w/exp_avg_sq"} : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  train.await %b : (!train.host<tensor<64x64xf32>>) -> ()
  train.await %c : (!train.host<tensor<64x64xf32>>) -> ()
  %db = train.sum_to %d {axes = array<i64: 0>, train.backward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %loss, %db : tensor<f32>, tensor<64xf32>
}
}
