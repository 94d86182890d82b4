// RUN: sluice-opt --sluice-verify-schedule --split-input-file --verify-diagnostics %s
// The program of verify-schedule.mlir with one mistake each.

#f = #sched.call<"", [], "run">

// An offset that is no multiple of 256.

sched.program @v1_alignment device(1024) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V1: 'a' has offset 300, not a multiple of 256}}
  %a = sched.buffer "a" device bytes(256) at(300) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A buffer that sticks out of its arena.

sched.program @v1_arena device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V1: 'a' has 256 bytes at 512 of a device arena of 512 bytes}}
  %a = sched.buffer "a" device bytes(256) at(512) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A transient among what outlives the step.

sched.program @v1_base device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V1: 'a' lies at bytes 0 to 256, on the wrong side of the base of 256 bytes}}
  %a = sched.buffer "a" device bytes(256) at(0) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A lifetime that ends before the copy out.

sched.program @v2_in_flight device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 1)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  // expected-error @below {{V2: step 2, d2h copy of 'a', uses 'a', which lives in steps 1 to 1}}
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A host slot that is given up before the copy back.

sched.program @v2_host device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 4)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  // expected-error @below {{V2: step 5, h2d copy of 'host', uses 'host', which lives in steps 2 to 4}}
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// Compute waits for the copy out at the end only.

sched.program @v2_dropped_await device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  // expected-error @below {{V2: 'a' is given up after step 2, but compute has not waited for step 2, d2h copy of 'a'}}
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
  sched.wait compute %out
}

// -----

#f = #sched.call<"", [], "run">

// The wait comes behind the step that reuses the bytes, and the lifetime says so.

sched.program @v3_shared device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V3: 'a' at bytes 256 to 512 and 'b' at bytes 256 to 512 share bytes while both live}}
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 3)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  // expected-note @below {{'b' lives in steps 3 to 4, 'a' in steps 1 to 3}}
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.wait compute %out
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// d2h copies without waiting for what compute writes.

sched.program @v5_dropped_ready device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  // expected-error @below {{V5: d2h copy of 'a' is the first op of d2h, which has not waited for compute: the step before may still be running}}
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// The same, where d2h at least waits for the step before.

sched.program @v3_early_copy device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  %begin = sched.record compute "begin"
  sched.wait d2h %begin
  // expected-note @unknown {{step 1 on compute}}
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  // expected-error @below {{V3: step 2, d2h copy of 'a', reads 'a' without waiting for step 1, f of 'fa', which writes 'a' in the same bytes}}
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// Nobody waits for the copy back.

// expected-error @below {{V5: ends before compute has waited for all 1 ops of h2d (for 0)}}
sched.program @v5_dropped_prefetch_wait device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// The copy back starts before the copy out has ended.

sched.program @v3_early_prefetch device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  %begin = sched.record compute "begin"
  sched.wait h2d %begin
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  // expected-note @below {{step 2 on d2h}}
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  // expected-error @below {{V3: step 5, h2d copy of 'host', reads 'host' without waiting for step 2, d2h copy of 'a', which writes 'host' in the same bytes}}
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// The copy back waits for the copy out, but not for the readers of the bytes that it writes.

sched.program @v3_reuse_in_use device(512) host(256) base(256) {
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
  // expected-note @below {{step 3 on compute}}
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f]
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f]
  %free = sched.record compute "free"
  sched.wait h2d %out
  // expected-error @below {{V3: step 5, h2d copy of 'host', writes 'back' without waiting for step 3, f of '', which writes 'b' in the same bytes}}
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

// Reader and writer change places.

sched.program @v4_swapped device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(256) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  // expected-error @unknown {{V4: step 3, f of 'fc', reads 'b', whose bytes step 1, f of 'fa', has overwritten with 'a'}}
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [0] -> [1] calls [#f] loc("fc")
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A host slot that is read but was never written.

sched.program @v4_host_unwritten device(512) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 1)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 4)
  %b = sched.buffer "b" device bytes(256) at(256) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(256) live(4, 5)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  %free = sched.record compute "free"
  sched.wait h2d %free
  // expected-error @below {{V4: step 4, h2d copy of 'host', reads 'host', which nothing has written}}
  sched.copy h2d %host -> %back versions 0 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// The copy back may start when step 3 is over, which is before its bytes are its own.

sched.program @v2_early device(768) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %host = sched.buffer "host" host bytes(256) at(0) live(2, 5)
  %b = sched.buffer "b" device bytes(256) at(256) live(3, 4)
  %back = sched.buffer "back" device bytes(256) at(512) live(5, 6)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %host versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fb")
  %free = sched.record compute "free"
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
  sched.wait h2d %free
  // expected-error @below {{V2: step 5, h2d copy of 'host', may use 'back' right after step 3, but it lives from step 5}}
  sched.copy h2d %host -> %back versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// Two in-place kernels change places: no byte is read before it is written, but the second was meant to come first.

sched.program @v4_in_place device(512) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  // expected-error @unknown {{V4: step 2, f of 'fc', is meant to read version 2 of 'a', but the one there is 1}}
  sched.run compute "f" ins(%a : tensor<64xf32>) outs(%a : tensor<64xf32>) versions [2] -> [3] calls [#f] loc("fc")
  sched.run compute "f" ins(%a : tensor<64xf32>) outs(%a : tensor<64xf32>) versions [1] -> [2] calls [#f] loc("fb")
  sched.run compute "f" ins(%a : tensor<64xf32>) outs(%loss : tensor<f32>) versions [3] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// Two writers of one buffer change places, and nobody reads between them.

sched.program @v4_writers device(256) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @unknown {{V4: step 1, f of 'fb', leaves version 2 of 'loss', but the one there is 1}}
  sched.run compute "f" ins() outs(%loss : tensor<f32>) versions [] -> [2] calls [#f] loc("fb")
  sched.run compute "f" ins() outs(%loss : tensor<f32>) versions [] -> [1] calls [#f] loc("fa")
}

// -----

// Two programs must agree about what outlives a step.

sched.program @v1_one device(512) host(0) base(512) {
  %w = sched.buffer "w" device bytes(256) variable(@w) at(0)
}
sched.program @v1_other device(512) host(0) base(512) {
  // expected-error @below {{V1: 'w' has 256 bytes at 256, but 256 at 0 in another program}}
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
}

// -----

// A batch of a larger shape arrives while a program runs: what that has on the host may not lie there.

sched.program @v1_small device(768) host(512) base(512) {
  %x = sched.buffer "x" device bytes(128) input("x") batch(0) at(0) : tensor<32xf32>
  %staging = sched.buffer "x" host bytes(128) input("x") at(0) : tensor<32xf32>
  %a = sched.buffer "a" device bytes(256) at(512) live(1, 2)
  // expected-error @below {{V1: 'slot' of @v1_small shares bytes with 'x' of @v1_large, which outlives a step}}
  %slot = sched.buffer "slot" host bytes(256) at(256) live(2, 2)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#sched.call<"", [], "run">] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
}
sched.program @v1_large device(768) host(512) base(512) {
  %x = sched.buffer "x" device bytes(512) input("x") batch(0) at(0) : tensor<128xf32>
  %staging = sched.buffer "x" host bytes(512) input("x") at(0) : tensor<128xf32>
}

// -----

// In common slots inputs may have sizes of their own, variables may not.

sched.program @v1_inputs device(768) host(0) base(768) {
  %x = sched.buffer "x" device bytes(128) input("x") batch(0) at(0) : tensor<32xf32>
  %w = sched.buffer "w" device bytes(256) variable(@w) at(512)
}
sched.program @v1_sizes device(768) host(0) base(768) {
  %x = sched.buffer "x" device bytes(512) input("x") batch(0) at(0) : tensor<128xf32>
  // expected-error @below {{V1: 'w' has 128 bytes at 512, but 256 at 512 in another program}}
  %w = sched.buffer "w" device bytes(128) variable(@w) at(512)
}

// -----

// What outlives a step begins where the largest batch ends.

sched.program @v1_first device(768) host(0) base(768) {
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
}
sched.program @v1_batch device(768) host(0) base(768) {
  // expected-error @below {{V1: 'x' shares bytes with 'w', and both outlive a step}}
  %x = sched.buffer "x" device bytes(512) input("x") batch(0) at(0) : tensor<128xf32>
}

// -----

// expected-error @below {{is not placed; run sluice-assign-slots before}}
sched.program @unplaced {
}

// -----

#f = #sched.call<"", [], "run">

// A slot that sticks out of the file.

sched.program @v1_storage device(768) host(0) storage(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  // expected-error @below {{V1: 'slot' has 256 bytes at 256 of a storage arena of 256 bytes}}
  %slot = sched.buffer "slot" storage bytes(256) at(256) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait storage %ready
  sched.copy storage %a -> %slot versions 1 -> 1
  %out = sched.record storage "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait storage %free
  sched.copy storage %slot -> %back versions 1 -> 1
  %in = sched.record storage "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// What comes back from the file is read before it is there.

sched.program @v2_storage device(768) host(0) storage(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %slot = sched.buffer "slot" storage bytes(256) at(0) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait storage %ready
  sched.copy storage %a -> %slot versions 1 -> 1
  %out = sched.record storage "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait storage %free
  // expected-error @below {{V2: 'slot' is given up after step 3, but compute has not waited for step 3, storage copy of 'slot'}}
  sched.copy storage %slot -> %back versions 1 -> 1
  %in = sched.record storage "in"
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
  sched.wait compute %in
}

// -----

#f = #sched.call<"", [], "run">

// A slot that sticks out of the spill arena.

sched.program @v1_spill device(768) host(4352) spill(256) base(256) pool(4096) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  // expected-error @below {{V1: 'slot' has 320 bytes at 0 of a spill arena of 256 bytes}}
  %slot = sched.buffer "slot" spill bytes(320) at(0) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  sched.copy h2d %slot -> %back codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A buffer in the pool.

sched.program @v1_pool device(768) host(4352) spill(512) base(256) pool(4096) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %slot = sched.buffer "slot" spill bytes(320) at(0) live(2, 3)
  // expected-error @below {{V1: 'staging' has 300 bytes at 0 of a host arena of 256 bytes before its pool}}
  %staging = sched.buffer "staging" host bytes(300) input("x") at(0)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  sched.copy h2d %slot -> %back codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// A pool that is larger than copies say, and none.

sched.program @v1_pool_size device(768) host(8448) spill(512) base(256) pool(8192) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %slot = sched.buffer "slot" spill bytes(320) at(0) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  // expected-error @below {{V1: has a pool of 4096 bytes, the program one of 8192}}
  sched.copy d2h %a -> %slot codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  sched.copy h2d %slot -> %back codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

sched.program @v3_spill device(768) host(4352) spill(512) base(256) pool(4096) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  // expected-error @below {{V3: 'slot' at bytes 0 to 320 and 'other' at bytes 256 to 512 share bytes while both live}}
  %slot = sched.buffer "slot" spill bytes(320) at(0) live(2, 3)
  // expected-note @below {{'other' lives in steps 2 to 3}}
  %other = sched.buffer "other" spill bytes(256) at(256) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  sched.copy h2d %slot -> %back codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// Ends that are no 64-bit numbers, of an offset and of a size.

sched.program @v1_offset_overflow device(512) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V1: 'a' has 256 bytes at 9223372036854775552 of a device arena of 512 bytes}}
  %a = sched.buffer "a" device bytes(256) at(9223372036854775552) live(1, 1)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @v1_size_overflow device(512) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V1: 'a' has 9223372036854775807 bytes at 256 of a device arena of 512 bytes}}
  %a = sched.buffer "a" device bytes(9223372036854775807) at(256) live(1, 1)
  sched.run compute "f" ins() outs(%loss : tensor<f32>) scratch(%a) versions [] -> [1] calls [#sched.call<"", [], "run", <scratch>>]
}

// -----

#f = #sched.call<"", [], "run">

// The next step would find the batch of the one before.

sched.program @v4_next_batch device(768) host(256) base(768) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %x = sched.buffer "x" device bytes(256) input("x") batch(0) at(256) : tensor<64xf32>
  // expected-error @below {{V4: 'x_next' is read after the step, but nothing has written it}}
  %x_next = sched.buffer "x_next" device bytes(256) input("x") batch(1) at(512) : tensor<64xf32>
  %x_staging = sched.buffer "x_staging" host bytes(256) input("x") at(0) : tensor<64xf32>
  sched.run compute "f" ins(%x : tensor<64xf32>) outs(%loss : tensor<f32>) versions [0] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @v4_result device(512) host(0) base(256) {
  // expected-error @below {{V4: 'loss' is read after the step, but nothing has written it}}
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 1)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

// Everything agrees on 128 bytes but the variable that they are for.

train.variable @w role(parameter) init(zero) : tensor<64xf32>
sched.program @v6_variable device(512) host(0) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @below {{V6: 'w' has 128 bytes, but 'tensor<64xf32>' needs 256}}
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  sched.run compute "f" ins(%w : tensor<32xf32>) outs(%loss : tensor<f32>) versions [0] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

// One launch has no order among what it takes.

sched.program @v7_order device(768) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %b = sched.buffer "b" device bytes(256) at(512) live(2, 3)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  // expected-error @unknown {{V7: step 2, f of 'fb', is launched together with step 1, f of 'fa', but 'a' shares bytes with 'a', and one of them is written}}
  sched.run compute "f" ins(%a : tensor<64xf32>) outs(%b : tensor<64xf32>) versions [1] -> [1] calls [#f] attributes {sched.together} loc("fb")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
}

// -----

#f = #sched.call<"", [], "run">

// Bytes that the first run gives up are not the last one's yet.

sched.program @v7_reuse device(768) host(0) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %a = sched.buffer "a" device bytes(256) at(512) live(1, 2)
  %b = sched.buffer "b" device bytes(256) at(512) live(4, 5)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>) versions [] -> [1] calls [#f] loc("fa")
  sched.run compute "f" ins(%a : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [1] calls [#f] loc("fb")
  sched.run compute "f" ins() outs(%loss : tensor<f32>) versions [] -> [1] calls [#f] attributes {sched.together} loc("fc")
  // expected-error @unknown {{V7: step 4, f of 'fd', is launched together with step 2, f of 'fb', but 'b' shares bytes with 'a'}}
  sched.run compute "f" ins() outs(%b : tensor<64xf32>) versions [] -> [1] calls [#f] attributes {sched.together} loc("fd")
  sched.run compute "f" ins(%b : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [2] calls [#f] loc("fe")
}

// -----

#f = #sched.call<"", [], "run">

// Nothing on compute that it could share a launch with.

sched.program @v7_alone device(512) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  // expected-error @unknown {{V7: step 1, f of 'fa', is launched together with the run in front of it, but there is none on compute}}
  sched.run compute "f" ins() outs(%loss : tensor<f32>) versions [] -> [1] calls [#f] attributes {sched.together} loc("fa")
}

// -----

#f = #sched.call<"", [], "run">

// Half of what is read is left of another buffer.

sched.program @v4_half device(768) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(512) at(256) live(1, 1)
  %b = sched.buffer "b" device bytes(512) at(256) live(2, 3)
  sched.run compute "f" ins() outs(%a : tensor<8x16xf32>) versions [] -> [1] calls [#f] loc("fa")
  sched.run compute "f" ins() outs(%b at 0 : tensor<8x8xf32>) versions [] -> [1] calls [#f] loc("fb")
  // expected-error @unknown {{V4: step 3, f of 'reader', reads 'b', whose bytes step 1, f of 'fa', has overwritten with 'a'}}
  sched.run compute "f" ins(%b : tensor<8x16xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("reader")
}

// -----

#f = #sched.call<"", [], "run">

// The other half was never written.

sched.program @v4_unwritten device(768) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %b = sched.buffer "b" device bytes(512) at(256) live(1, 2)
  sched.run compute "f" ins() outs(%b at 0 : tensor<8x8xf32>) versions [] -> [1] calls [#f] loc("fb")
  // expected-error @unknown {{V4: step 2, f of 'fc', reads 'b', which nothing has written}}
  sched.run compute "f" ins(%b at 256 : tensor<8x8xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fc")
}

// -----

#f = #sched.call<"", [], "run">

// A kernel that reads all of a buffer cannot write a part of it meanwhile.

sched.program @v3_piece_of_read device(768) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %b = sched.buffer "b" device bytes(512) at(256) live(1, 3)
  sched.run compute "f" ins() outs(%b : tensor<8x16xf32>) versions [] -> [1] calls [#f] loc("fb")
  // expected-error @unknown {{V3: step 2, f of 'fc', writes 'b' without waiting for step 2, f of 'fc', which reads 'b' in the same bytes}}
  // expected-note @unknown {{step 2 on compute}}
  sched.run compute "f" ins(%b : tensor<8x16xf32>) outs(%b at 256 : tensor<8x8xf32>) versions [1] -> [2] calls [#f] loc("fc")
  sched.run compute "f" ins(%b : tensor<8x16xf32>) outs(%loss : tensor<f32>) versions [2] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// The loss is read after the step, all of it.

sched.program @v4_result device(768) host(0) base(512) {
  // expected-error @below {{V4: 'loss' is read after the step, but nothing has written it}}
  %loss = sched.buffer "loss" device bytes(512) result(0) at(0)
  sched.run compute "f" ins() outs(%loss at 0 : tensor<8x8xf32>) versions [] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

// What was packed one way is unpacked another way, as large.

sched.program @v6_unpacked device(768) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %slot = sched.buffer "slot" host bytes(128) at(0) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<8x8xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot codec("zfp:16" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  // expected-error @below {{V6: unpacks 'slot' with fp16 as 'tensor<8x8xf32>', it was packed with zfp:16 as 'tensor<8x8xf32>'}}
  sched.copy h2d %slot -> %back codec("fp16" : tensor<8x8xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<8x8xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// What was packed one way is unpacked as another tensor, as large.

sched.program @v6_unpacked_shape device(768) host(256) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "a" device bytes(256) at(256) live(1, 2)
  %slot = sched.buffer "slot" host bytes(128) at(0) live(2, 3)
  %back = sched.buffer "back" device bytes(256) at(512) live(3, 4)
  sched.run compute "f" ins() outs(%a : tensor<8x8xf32>) versions [] -> [1] calls [#f] loc("fa")
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %a -> %slot codec("zfp:16" : tensor<8x8xf32>) versions 1 -> 1
  %out = sched.record d2h "out"
  sched.wait compute %out
  %free = sched.record compute "free"
  sched.wait h2d %free
  sched.wait h2d %out
  // expected-error @below {{V6: unpacks 'slot' with zfp:16 as 'tensor<4x16xf32>', it was packed with zfp:16 as 'tensor<8x8xf32>'}}
  sched.copy h2d %slot -> %back codec("zfp:16" : tensor<4x16xf32>) versions 1 -> 1
  %in = sched.record h2d "in"
  sched.wait compute %in
  sched.run compute "f" ins(%back : tensor<8x8xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [#f] loc("fd")
}

// -----

#f = #sched.call<"", [], "run">

// What a program computes is a function of its module; that it computes it is CallMutationTest's.

// expected-error @below {{V8: names @gone as what was planned, which is no function of the module}}
sched.program @v8_planned device(512) host(0) base(256) computes(@gone) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  sched.run compute "f" ins() outs(%loss : tensor<f32>) versions [] -> [1] calls [#f] loc("fa")
}
