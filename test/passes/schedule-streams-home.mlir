// RUN: sluice-opt --sluice-schedule-streams %s -o %t && FileCheck %s --input-file=%t
// RUN: sluice-opt --sluice-assign-slots --sluice-verify-schedule %t -o /dev/null
// Updates at home in fp16, of which one gradient leaves before the check of all and one behind it: the first update waits for the check, the second one for its gradient, which says more.

train.variable @a role(parameter) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @"a/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @b role(parameter) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @"b/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @scale role(optimizer) init(zero) : tensor<f32>
train.variable @good role(optimizer) init(zero) : tensor<f32>
train.variable @skipped role(optimizer) init(zero) : tensor<f32>

// CHECK: sched.copy d2h
// CHECK: sched.run compute "check_gradients"
// CHECK-NEXT: %[[CHECKED:.*]] = sched.record compute "checked"
// CHECK: sched.copy d2h
// CHECK-NEXT: %[[B:.*]] = sched.record d2h
// CHECK-NEXT: sched.wait home %[[CHECKED]]
// CHECK-NEXT: sched.run home "update"
// CHECK-NEXT: sched.wait home %[[B]]
// CHECK-NEXT: sched.run home "update"
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<f32> {
  %loss = train.mse %x, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
  %da = train.matmul %x, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %db = train.matmul %y, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %ha = train.offload %da : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  train.await %ha : (!train.host<tensor<64x64xf32>>) -> ()
  %s = train.read @scale : tensor<f32>
  %g = train.read @good : tensor<f32>
  %k = train.read @skipped : tensor<f32>
  %s2, %g2, %k2 = train.check_gradients %da, %db of %s, %g, %k : tensor<64x64xf32>, tensor<64x64xf32> of tensor<f32>
  %hb = train.offload %db : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
  train.await %hb : (!train.host<tensor<64x64xf32>>) -> ()
  %a = train.read @a : !train.host<tensor<64x64xf32>>
  %ma = train.read @"a/momentum" : !train.host<tensor<64x64xf32>>
  %a2:2 = train.update(%ha, %a, %ma) rule(sgd) : !train.host<tensor<64x64xf32>>
  %b = train.read @b : !train.host<tensor<64x64xf32>>
  %mb = train.read @"b/momentum" : !train.host<tensor<64x64xf32>>
  %b2:2 = train.update(%hb, %b, %mb) rule(sgd) : !train.host<tensor<64x64xf32>>
  return %loss : tensor<f32>
}
