// RUN: sluice-opt --sluice-verify-schedule %s | FileCheck %s
// RUN: not sluice-opt --sluice-verify-schedule=budget=500 %s 2>&1 | FileCheck --check-prefix=DEVICE %s
// RUN: not sluice-opt --sluice-verify-schedule=host-budget=255 %s 2>&1 | FileCheck --check-prefix=HOST %s
// RUN: sluice-opt --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule %S/schedule-streams.mlir
// A placed program in which every reuse of bytes is ordered by an event: `b` takes the bytes of `a` once compute has waited for the copy
// out, `back` takes those of `b` once h2d has waited for compute. verify-schedule says nothing and changes nothing.

#f = #sched.call<"", [], "run">

// DEVICE: V1: the device arena has 512 bytes, the budget is 500
// HOST: V1: the host arena has 256 bytes, the budget is 255
// CHECK: sched.wait compute %out
// CHECK: sched.wait compute %in
sched.program @step device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f]
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f]
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f]
}
