// RUN: sluice-opt %s "--sluice-home-variables=states=host parameters=host" | FileCheck %s
// RUN: sluice-opt %s "--sluice-home-variables=states=host parameters=host" --mlir-print-op-generic | sluice-opt | FileCheck %s
// RUN: sluice-opt %s "--sluice-home-variables=states=host parameters=host updates-at-home=false" | FileCheck %s --check-prefix=DEVICE
// RUN: sluice-opt %s "--sluice-home-variables=states=host" | FileCheck %s --check-prefix=DEVICE
// RUN: sluice-opt %s "--sluice-home-variables=states=host parameters=host" --sluice-schedule-streams --sluice-assign-slots -o %t && sluice-opt %t --sluice-verify-schedule | FileCheck %s --check-prefix=SCHED
// An update of which parameter and states are in host memory runs there: the gradient goes home after the op that touches it last, the norm once for all. What else
// reads the parameter fetches it. Lamb's updates, those of what is accumulated and of a gradient that another update reads as well stay on the device.

train.variable @w role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"w/exp_avg" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"w/exp_avg_sq" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @u role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"u/exp_avg" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"u/exp_avg_sq" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"u/average" role(optimizer) init(copy) : tensor<64x64xf32>
train.variable @l role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"l/exp_avg" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"l/exp_avg_sq" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @s role(parameter) init(zero) : tensor<64x64xf32>
train.variable @"s/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
train.variable @"s/sum" role(gradient) init(zero) : tensor<64x64xf32>

// DEVICE-NOT: rule(adamw) : !train.host
// DEVICE: rule(lamb)

// CHECK-LABEL: func.func @step
// CHECK: %[[DW:.*]] = train.matmul {{.*}}transpose_a = true
// CHECK-NEXT: %[[N:.*]] = train.gradient_norm %[[DW]]
// CHECK-NEXT: %[[GW:.*]] = train.offload %[[DW]] : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
// CHECK-NEXT: train.await %[[GW]]
// CHECK: %[[VU:.*]] = train.reshape %{{.*}}
// CHECK-NEXT: %[[ALL:.*]] = train.gradient_norm %[[VU]] behind %[[N]]
// CHECK-NEXT: %[[GU:.*]] = train.offload %[[VU]]
// CHECK-NEXT: train.await %[[GU]]
// CHECK-NEXT: %[[GN:.*]] = train.offload %[[ALL]] : (tensor<f32>) -> !train.host<tensor<f32>>
// CHECK-NEXT: train.await %[[GN]]
// CHECK-NEXT: %[[W:.*]] = train.read @w : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[M:.*]] = train.read @"w/exp_avg" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: %[[V:.*]] = train.read @"w/exp_avg_sq" : !train.host<tensor<64x64xf32>>
// CHECK-NEXT: train.update(%[[GW]], %[[W]], %[[M]], %[[V]]) norm(%[[GN]]) rule(adamw) {train.backward = 0 : i64} : !train.host<tensor<64x64xf32>>
// CHECK: %[[U:.*]]:4 = train.update(%[[GU]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) norm(%[[GN]]) rule(adamw) {averaged, train.backward = 0 : i64} : !train.host<tensor<64x64xf32>>
// CHECK: train.prefetch
// CHECK: rule(lamb) {{.*}} : tensor<64x64xf32>
// CHECK: train.accumulate
// CHECK: rule(sgd) {{.*}} : tensor<64x64xf32>

// SCHED: sched.copy d2h %w_grad -> %w_grad_host
// SCHED: sched.wait home %{{.*}}_host_copied
// SCHED: sched.run home "update" ins(%w_grad_host : tensor<64x64xf32>, {{.*}} outs(%w : tensor<64x64xf32>, %w_exp_avg : tensor<64x64xf32>, %w_exp_avg_sq : tensor<64x64xf32>)
// SCHED: sched.wait compute
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<64x64xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %loss = train.mse %a, %y {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %d = train.loss_backward mse %a, %y {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = train.matmul %x, %d {transpose_a = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %n = train.gradient_norm %dw {train.backward = 0 : i64} : tensor<64x64xf32> -> tensor<f32>
  %dx = train.matmul %d, %w {transpose_b = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dl = train.matmul %dx, %d {transpose_b = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %ds = train.matmul %dx, %dx {transpose_b = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %du = train.matmul %dx, %y {transpose_b = true, train.backward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %vu = train.reshape %du : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %all = train.gradient_norm %vu behind %n {train.backward = 0 : i64} : tensor<64x64xf32>, tensor<f32> -> tensor<f32>
  %wm = train.read @"w/exp_avg" : tensor<64x64xf32>
  %wv = train.read @"w/exp_avg_sq" : tensor<64x64xf32>
  %w2:3 = train.update(%dw, %w, %wm, %wv) norm(%all) rule(adamw) {train.backward = 0 : i64} : tensor<64x64xf32>
  %u = train.read @u : tensor<64x64xf32>
  %um = train.read @"u/exp_avg" : tensor<64x64xf32>
  %uv = train.read @"u/exp_avg_sq" : tensor<64x64xf32>
  %ua = train.read @"u/average" : tensor<64x64xf32>
  %u2:4 = train.update(%vu, %u, %um, %uv, %ua) norm(%all) rule(adamw) {averaged, train.backward = 0 : i64} : tensor<64x64xf32>
  %l = train.read @l : tensor<64x64xf32>
  %lm = train.read @"l/exp_avg" : tensor<64x64xf32>
  %lv = train.read @"l/exp_avg_sq" : tensor<64x64xf32>
  %l2:3 = train.update(%dl, %l, %lm, %lv) norm(%all) rule(lamb) {train.backward = 0 : i64} : tensor<64x64xf32>
  %sum = train.read @"s/sum" : tensor<64x64xf32>
  %sums = train.accumulate %ds, %sum {train.backward = 0 : i64} : tensor<64x64xf32>
  %s = train.read @s : tensor<64x64xf32>
  %sm = train.read @"s/momentum" : tensor<64x64xf32>
  %s2:2 = train.update(%sums, %s, %sm) rule(sgd) {train.backward = 0 : i64} : tensor<64x64xf32>
  return %loss : tensor<f32>
}
