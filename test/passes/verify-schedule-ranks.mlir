// RUN: sluice-opt --sluice-verify-schedule --split-input-file --verify-diagnostics %s
// V9: in a module for several ranks what changes variables reads what all ranks have summed, once. The first programs are right, the others have one mistake each.

// Summed in place, then its norm, then the update.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @right device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(3, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %ready1 = sched.record compute "ready"
  sched.wait comm %ready1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done1 = sched.record comm "done"
  sched.wait compute %done1
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [2] -> [1] calls [#f] role(update)
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update)
}
}

// -----

// The sum was dropped.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_dropped device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update)
  sched.run compute "f" ins() outs(%m : tensor<64xf32>) versions [] -> [1] calls [#f]
}
}

// -----

// The update came ahead of it.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_late device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(4, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update)
  %ready2 = sched.record compute "ready"
  sched.wait comm %ready2
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done2 = sched.record comm "done"
  sched.wait compute %done2
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [2] -> [1] calls [#f] role(update)
}
}

// -----

// The norm came ahead of it.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_norm device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
  %ready3 = sched.record compute "ready"
  sched.wait comm %ready3
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done3 = sched.record comm "done"
  sched.wait compute %done3
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update)
}
}

// -----

// Twice.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_twice device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(4, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %ready4 = sched.record compute "ready"
  sched.wait comm %ready4
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done4 = sched.record comm "done"
  sched.wait compute %done4
  %ready5 = sched.record compute "ready"
  sched.wait comm %ready5
  // expected-error @below {{V9: '' sums 'g', which all ranks have summed already}}
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [2] -> [3] calls [#f] role(reduce)
  %done5 = sched.record comm "done"
  sched.wait compute %done5
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [3] -> [1] calls [#f] role(update)
}
}

// -----

// Something else wrote over it.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_overwritten device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %ready6 = sched.record compute "ready"
  sched.wait comm %ready6
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done6 = sched.record comm "done"
  sched.wait compute %done6
  sched.run compute "f" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [2] -> [3] calls [#f]
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [3, 0] -> [1] calls [#f] role(update)
}
}

// -----

// Running statistics of this rank alone.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_statistics device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "f" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
  // expected-error @below {{V9: '' updates running statistics by this rank's batch alone}}
  sched.run compute "update_statistics" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update)
}
}

// -----

// Statistics that were not summed.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_shares device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "f" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "apply_statistics" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 0] -> [1] calls [#f] role(update)
}
}

// -----

// In a program for one process.
#f = #sched.call<"", [], "run">

module {
sched.program @v9_alone device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(3, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %ready7 = sched.record compute "ready"
  sched.wait comm %ready7
  // expected-error @below {{V9: '' sums over ranks in a program for one}}
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done7 = sched.record comm "done"
  sched.wait compute %done7
  sched.run compute "gradient_norm" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [2] -> [1] calls [#f] role(update)
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update)
}
}

// -----

// A check of what this rank alone has.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_check device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %s = sched.buffer "s" device bytes(4) variable(@s) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "f" ins(%g : tensor<64xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
  // expected-error @below {{V9: '' reads 'g' before all ranks have summed it}}
  sched.run compute "check_gradients" ins(%s : tensor<f32>, %s : tensor<f32>, %s : tensor<f32>, %g : tensor<64xf32>) outs(%s : tensor<f32>) versions [0, 0, 0, 1] -> [1] calls [#f] role(update)
}
}

// -----

// Two in one message, with a room; each has its update.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @together device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  sched.run compute "update" ins(%b : tensor<64xf32>, %m : tensor<64xf32>) outs(%m : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @m}
}
}

// -----

// A share of a parameter is updated, then all of it is gathered.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @shares device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "ready"
  sched.wait comm %r2
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "done"
  sched.wait compute %d2
}
}

// -----

// A sum of another shape than its parts.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_size device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 2)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' sums 'tensor<64xf32>' of 'b' into 'tensor<8x8xf32>'}}
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<8x8xf32>) versions [1, 1] -> [2, 2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
}
}

// -----

// One of two is left out.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_fewer device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 2)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' makes 1 sums of 2}}
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1, 1] -> [2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
}
}

// -----

// The room belongs to sums alone.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v9_room device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 2)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 2)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  // expected-error @below {{V9: '' uses 'room', the room of sums over ranks}}
  sched.run compute "f" ins(%room : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [1] calls [#f]
}
}

// -----

// A share stays a share.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_never device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  // expected-error @below {{V9: '' updates a share of 'w', which is never gathered}}
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// A share is read as if it were all.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_early device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  // expected-error @below {{V9: '' uses 'w' before all ranks have gathered it}}
  sched.run compute "f" ins(%w : tensor<64xf32>) outs(%m : tensor<64xf32>) versions [1] -> [1] calls [#f]
  %r2 = sched.record compute "ready"
  sched.wait comm %r2
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "done"
  sched.wait compute %d2
}
}

// -----

// Gathered before it is updated.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_not_updated device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 1)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 1)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' gathers 'w', which no rank has updated since}}
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
}
}

// -----

// In a program for one process.
#f = #sched.call<"", [], "run">

module attributes {train.precision = "fp32"} {
sched.program @v9_gather_alone device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 1)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 1)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' gathers over ranks in a program for one}}
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
}
}

// -----

// The update does not wait for the sum.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered"} {
sched.program @v3_race device(1536) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %b = sched.buffer "b" device bytes(256) at(1280) live(1, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-note @below {{step 2 on comm}}
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) outs(%g : tensor<64xf32>, %b : tensor<64xf32>, %room : tensor<64xf32>) versions [1, 1, 0] -> [2, 2, 1] calls [#f] role(reduce)
  // expected-error @below {{V3: step 3, update of '', reads 'g' without waiting for step 2, all_reduce of '', which writes 'g' in the same bytes}}
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %d1 = sched.record comm "done"
  sched.wait compute %d1
}
}

// -----

// Each rank gets its share of the sum, of which all take the norm, and updates that.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @gradient_shares device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %share = sched.buffer "share" device bytes(128) at(1280) live(2, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(2, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  sched.run comm "shares_norm" ins(%share : tensor<32xf32>, %room : tensor<64xf32>) outs(%norm : tensor<f32>, %room : tensor<64xf32>) versions [1, 1] -> [1, 2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %norm : tensor<f32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "ready"
  sched.wait comm %r2
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "done"
  sched.wait compute %d2
}
}

// -----

// Where ranks have all of each gradient.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_scatters device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %share = sched.buffer "share" device bytes(128) at(1280) live(2, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(2, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' scatters 'g', of which each rank updates all}}
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  sched.run comm "shares_norm" ins(%share : tensor<32xf32>, %room : tensor<64xf32>) outs(%norm : tensor<f32>, %room : tensor<64xf32>) versions [1, 1] -> [1, 2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %norm : tensor<f32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1, 1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "ready"
  sched.wait comm %r2
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "done"
  sched.wait compute %d2
}
}

// -----

// Of another length than the shares.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_length device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %share = sched.buffer "share" device bytes(64) at(1280) live(2, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(3, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  // expected-error @below {{V9: '' sums 'tensor<64xf32>' of 'g' into 'tensor<16xf32>'}}
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<16xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "f" ins(%w : tensor<64xf32>) outs(%norm : tensor<f32>) versions [0] -> [1] calls [#f]
}
}

// -----

// A norm of all of a gradient as if it were a share.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_norm device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 4)
  %share = sched.buffer "share" device bytes(128) at(1280) live(2, 4)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(2, 4)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  // expected-error @below {{V9: '' takes the norm of 'g', which is no share of a sum}}
  sched.run comm "shares_norm" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%norm : tensor<f32>, %room : tensor<64xf32>) versions [1, 1] -> [1, 2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "f" ins(%w : tensor<64xf32>) outs(%m : tensor<64xf32>) versions [0] -> [1] calls [#f]
}
}

// -----

// A rank's own norm of its share.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_own_norm device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %share = sched.buffer "share" device bytes(128) at(1280) live(2, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(3, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  // expected-error @below {{V9: '' reads a share of 'share' as if it were all}}
  sched.run compute "gradient_norm" ins(%share : tensor<32xf32>) outs(%norm : tensor<f32>) versions [1] -> [1] calls [#f] role(update)
}
}

// -----

// An update by all of a gradient that was summed whole.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
sched.program @v9_whole device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %m = sched.buffer "m" device bytes(256) variable(@m) at(512)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %g = sched.buffer "g" device bytes(256) at(1024) live(1, 3)
  %share = sched.buffer "share" device bytes(128) at(1280) live(3, 3)
  %norm = sched.buffer "norm" device bytes(4) at(1536) live(3, 3)
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  // expected-error @below {{V9: '' updates a share by all of 'g'}}
  sched.run compute "update" ins(%g : tensor<64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "ready"
  sched.wait comm %r2
  sched.run comm "all_gather" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "done"
  sched.wait compute %d2
}
}
