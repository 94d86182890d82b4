// RUN: sluice-opt --sluice-assign-slots %s | FileCheck %s
// Copies in flight belong to a lifetime. `a` is copied out in step 2, but compute waits for it only after step 3, so b (written in step
// 3) must not have its bytes and c (step 4) may. The host slot is in use from the copy out to the wait for the copy back.

#f = #sched.call<"", [], "run">

// CHECK-LABEL: sched.program @step device(2048) host(1024) base(0)
// CHECK: "a" device bytes(1024) at([[A:[0-9]+]]) live(1, 3)
// CHECK: "host" host bytes(1024) at(0) live(2, 6)
// CHECK: "b" device bytes(1024) at({{0|1024}}) live(3, 4)
// CHECK: "c" device bytes(1024) at([[A]]) live(4, 4)
// h2d may begin as soon as compute recorded `free`, behind step 4 where b ends.
// CHECK: "back" device bytes(1024) at({{0|1024}}) live(5, 7)
// CHECK: "d" device bytes(1024) at({{0|1024}}) live(6, 7)
sched.program @step {
  %a = sched.buffer "a" device bytes(1024)
  %host = sched.buffer "host" host bytes(1024)
  %b = sched.buffer "b" device bytes(1024)
  %c = sched.buffer "c" device bytes(1024)
  %back = sched.buffer "back" device bytes(1024)
  %d = sched.buffer "d" device bytes(1024)
  sched.run compute "f" ins() outs(%a : tensor<256xf32>) versions [] -> [1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.run compute "f" ins() outs(%b : tensor<256xf32>) versions [] -> [1] calls [#f]
  sched.wait compute %out
  sched.run compute "f" ins(%b : tensor<256xf32>) outs(%c : tensor<256xf32>) versions [1] -> [1] calls [#f]
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.run compute "f" ins() outs(%d : tensor<256xf32>) versions [] -> [1] calls [#f]
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<256xf32>, %d : tensor<256xf32>) outs() versions [1, 1] -> [] calls [#f]
}
