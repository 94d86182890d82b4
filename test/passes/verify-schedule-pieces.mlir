// RUN: sluice-opt --sluice-verify-schedule %s | FileCheck %s
// Two steps write half of a buffer each, the third works on one half in place, the fourth reads all of it. Versions count the writes of the buffer.

#f = #sched.call<"", [], "run">

// CHECK: outs(%a at 256 : tensor<64xf32>) versions [] -> [2]
sched.program @step device(768) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(512) at(256) live(1, 4)
  sched.run compute "f" ins() outs(%a at 0 : tensor<64xf32>) versions [] -> [1] calls [#f]
  sched.run compute "f" ins() outs(%a at 256 : tensor<64xf32>) versions [] -> [2] calls [#f]
  sched.run compute "f" ins(%a at 256 : tensor<64xf32>, %a at 0 : tensor<64xf32>) outs(%a at 256 : tensor<64xf32>) versions [2, 2] -> [3] calls [#f]
  sched.run compute "f" ins(%a : tensor<128xf32>) outs(%loss : tensor<f32>) versions [3] -> [1] calls [#f]
}
