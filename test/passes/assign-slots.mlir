// RUN: sluice-opt --sluice-assign-slots %s | FileCheck %s
// Two programs over one arena. Sizes round up to 256: w 256, each batch slot of x 512, the loss 256, so the base is 1536 bytes.
// @step: a lives in steps 1-2, b in 2-3, c in 3-4, 1024 bytes each; two at a time, so c takes a's bytes: 1536 + 2048 = 3584.
// @evaluate: one buffer of 512 bytes, in the same space.

#f = #sched.call<"", [], "run">

// CHECK-LABEL: sched.program @step device(3584) host(512) base(1536)
// CHECK: "w" device bytes(100) variable(@w) at(0)
// CHECK: "x" device bytes(300) input("x") batch(0) at(256)
// CHECK: "x_next" device bytes(300) input("x") batch(1) at(768)
// CHECK: "x_staging" host bytes(300) input("x") at(0)
// CHECK: "loss" device bytes(4) result(0) at(1280)
// CHECK: "a" device bytes(1000) at([[A:[0-9]+]]) live(1, 2)
// CHECK: "b" device bytes(1000) at({{1536|2560}}) live(2, 3)
// CHECK: "c" device bytes(1000) at([[A]]) live(3, 4)
// A buffer that nothing uses is gone.
// CHECK-NOT: "unused"
sched.program @step {
  %w = sched.buffer "w" device bytes(100) variable(@w)
  %x = sched.buffer "x" device bytes(300) input("x") batch(0)
  %x_next = sched.buffer "x_next" device bytes(300) input("x") batch(1)
  %x_staging = sched.buffer "x_staging" host bytes(300) input("x")
  %loss = sched.buffer "loss" device bytes(4) result(0)
  %a = sched.buffer "a" device bytes(1000)
  %b = sched.buffer "b" device bytes(1000)
  %c = sched.buffer "c" device bytes(1000)
  %unused = sched.buffer "unused" device bytes(1000000)
  sched.run compute "f" ins(%x : tensor<75xf32>, %w : tensor<25xf32>) outs(%a : tensor<250xf32>) versions [0, 0] -> [1] calls [#f]
  sched.run compute "f" ins(%a : tensor<250xf32>) outs(%b : tensor<250xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "f" ins(%b : tensor<250xf32>) outs(%c : tensor<250xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "f" ins(%c : tensor<250xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f]
}

// CHECK-LABEL: sched.program @evaluate device(3584) host(512) base(1536)
// CHECK: "x" device bytes(300) input("x") batch(0) at(256)
// CHECK: "y" device bytes(400) at(1536) live(1, 2)
// CHECK: "loss" device bytes(4) result(0) at(1280)
sched.program @evaluate {
  %x = sched.buffer "x" device bytes(300) input("x") batch(0)
  %y = sched.buffer "y" device bytes(400)
  %loss = sched.buffer "loss" device bytes(4) result(0)
  sched.run compute "f" ins(%x : tensor<75xf32>) outs(%y : tensor<100xf32>) versions [0] -> [1] calls [#f]
  sched.run compute "f" ins(%y : tensor<100xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f]
}
