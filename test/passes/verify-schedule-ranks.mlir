// RUN: sluice-opt --sluice-verify-schedule --split-input-file --verify-diagnostics %s
// V9: in a module for several ranks what changes variables reads what all ranks have summed, once. The first program is right, the others have one mistake each.

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
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
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
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
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
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
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
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  // expected-error @below {{V9: '' sums 'g', which all ranks have summed already}}
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [2] -> [3] calls [#f] role(reduce)
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
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
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
  // expected-error @below {{V9: '' sums over ranks in a program for one}}
  sched.run compute "all_reduce" ins(%g : tensor<64xf32>) outs(%g : tensor<64xf32>) versions [1] -> [2] calls [#f] role(reduce)
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
