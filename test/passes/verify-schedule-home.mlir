// RUN: sluice-opt %s --sluice-verify-schedule --split-input-file --verify-diagnostics
// V3 of what no buffer holds: in fp16 updates and norms read what the check of all gradients has decided, updates at home by a copy of their stream. Each program differs from the first one in one thing.

#f = #sched.call<"", [], "run">

// The gradient leaves before the check; the update waits for both.
train.variable @w role(parameter) init(zero) : tensor<64xf32> {home = "host"}
sched.program @checked device(1024) host(512) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(256)
  %w = sched.buffer "w" host bytes(256) variable(@w) at(0)
  %g = sched.buffer "g" device bytes(256) at(512) live(1, 4)
  %h = sched.buffer "g_host" host bytes(256) at(256) live(2, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r0 = sched.record compute "g_ready"
  sched.wait d2h %r0
  sched.copy d2h %g -> %h versions 1 -> 1
  %r1 = sched.record d2h "copied"
  sched.run compute "check_gradients" ins(%s : tensor<f32>, %s : tensor<f32>, %s : tensor<f32>, %g : tensor<64xf32>) outs(%s : tensor<f32>) versions [0, 0, 0, 1] -> [1] calls [#f] role(update)
  %r2 = sched.record compute "checked"
  sched.wait home %r1
  sched.wait home %r2
  sched.run home "update" ins(%h : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r3 = sched.record home "updated"
  sched.wait compute %r3
}

// -----

// It waits for the copy alone.
#f = #sched.call<"", [], "run">

train.variable @w role(parameter) init(zero) : tensor<64xf32> {home = "host"}
sched.program @v3_unchecked_at_home device(1024) host(512) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(256)
  %w = sched.buffer "w" host bytes(256) variable(@w) at(0)
  %g = sched.buffer "g" device bytes(256) at(512) live(1, 4)
  %h = sched.buffer "g_host" host bytes(256) at(256) live(2, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r0 = sched.record compute "g_ready"
  sched.wait d2h %r0
  sched.copy d2h %g -> %h versions 1 -> 1
  %r1 = sched.record d2h "copied"
  sched.run compute "check_gradients" ins(%s : tensor<f32>, %s : tensor<f32>, %s : tensor<f32>, %g : tensor<64xf32>) outs(%s : tensor<f32>) versions [0, 0, 0, 1] -> [1] calls [#f] role(update)
  sched.wait home %r1
  // expected-error @below {{V3: step 4, update of '', takes a gradient without waiting for step 3, check_gradients of '', which says how}}
  sched.run home "update" ins(%h : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r3 = sched.record home "updated"
  sched.wait compute %r3
}

// -----

// On the device streams order them, unless the norm comes first.
#f = #sched.call<"", [], "run">

sched.program @v3_unchecked_norm device(1024) host(0) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(256)
  %g = sched.buffer "g" device bytes(256) at(512) live(1, 3)
  %n = sched.buffer "norm" device bytes(4) at(768) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  // expected-error @below {{V3: step 2, gradient_norm of '', takes a gradient without waiting for step 3, check_gradients of '', which says how}}
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%n : tensor<f32>) versions [1] -> [1] calls [#f]
  sched.run compute "check_gradients" ins(%s : tensor<f32>, %s : tensor<f32>, %s : tensor<f32>, %g : tensor<64xf32>) outs(%s : tensor<f32>) versions [0, 0, 0, 1] -> [1] calls [#f] role(update)
}
