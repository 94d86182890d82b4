// RUN: sluice-opt --sluice-verify-schedule --split-input-file --verify-diagnostics %s
// V9: where BatchNorms are synchronized, nobody reads a rank's own statistics once they are joint, running statistics take the joint ones, and ranks meet once, where all of them do. The
// first program is right, the others have one mistake each.

#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @right device(2304) host(0) base(512) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(256) variable(@w) at(256)
  %x = sched.buffer "x" device bytes(256) at(512) live(1, 7)
  %m = sched.buffer "mean" device bytes(256) at(768) live(2, 3)
  %r = sched.buffer "rstd" device bytes(256) at(1024) live(2, 3)
  %jm = sched.buffer "joint_mean" device bytes(256) at(1280) live(3, 5)
  %jr = sched.buffer "joint_rstd" device bytes(256) at(1536) live(3, 5)
  %y = sched.buffer "y" device bytes(256) at(1792) live(4, 4)
  %s = sched.buffer "shares" device bytes(512) at(1792) live(5, 7)
  sched.run compute "f" ins() outs(%x : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "batch_norm_statistics" ins(%x : tensor<64xf32>) outs(%m : tensor<64xf32>, %r : tensor<64xf32>) versions [1] -> [1, 1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait comm %ready
  sched.run comm "synchronize_statistics" ins(%m : tensor<64xf32>, %r : tensor<64xf32>) outs(%jm : tensor<64xf32>, %jr : tensor<64xf32>) versions [1, 1] -> [1, 1] calls [#f] role(reduce)
  %done = sched.record comm "done"
  sched.wait compute %done
  sched.run compute "f" ins(%x : tensor<64xf32>, %jm : tensor<64xf32>, %jr : tensor<64xf32>) outs(%y : tensor<64xf32>) versions [1, 1, 1] -> [1] calls [#f]
  sched.run compute "batch_statistics" ins(%jm : tensor<64xf32>, %jr : tensor<64xf32>) outs(%s : tensor<2x64xf32>) versions [1, 1] -> [1] calls [#f] role(update)
  %ready2 = sched.record compute "ready"
  sched.wait comm %ready2
  sched.run comm "all_reduce" ins(%s : tensor<2x64xf32>) outs(%s : tensor<2x64xf32>) versions [1] -> [2] calls [#f] role(reduce)
  %done2 = sched.record comm "done"
  sched.wait compute %done2
  sched.run compute "apply_statistics" ins(%s : tensor<2x64xf32>, %w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [2, 0] -> [1] calls [#f] role(update)
}
}

// -----

// Normalized by the rank's own.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @v9_own device(2304) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %x = sched.buffer "x" device bytes(256) at(512) live(1, 4)
  %m = sched.buffer "mean" device bytes(256) at(768) live(2, 4)
  %r = sched.buffer "rstd" device bytes(256) at(1024) live(2, 3)
  %jm = sched.buffer "joint_mean" device bytes(256) at(1280) live(3, 4)
  %jr = sched.buffer "joint_rstd" device bytes(256) at(1536) live(3, 4)
  %y = sched.buffer "y" device bytes(256) at(1792) live(4, 4)
  sched.run compute "f" ins() outs(%x : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "batch_norm_statistics" ins(%x : tensor<64xf32>) outs(%m : tensor<64xf32>, %r : tensor<64xf32>) versions [1] -> [1, 1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait comm %ready
  sched.run comm "synchronize_statistics" ins(%m : tensor<64xf32>, %r : tensor<64xf32>) outs(%jm : tensor<64xf32>, %jr : tensor<64xf32>) versions [1, 1] -> [1, 1] calls [#f] role(reduce)
  %done = sched.record comm "done"
  sched.wait compute %done
  // expected-error @below {{V9: '' reads 'mean', this rank's statistics, once they were synchronized}}
  sched.run compute "f" ins(%x : tensor<64xf32>, %m : tensor<64xf32>, %jr : tensor<64xf32>) outs(%y : tensor<64xf32>) versions [1, 1, 1] -> [1] calls [#f]
}
}

// -----

// Running statistics of the rank's own.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @v9_running device(2304) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %x = sched.buffer "x" device bytes(256) at(512) live(1, 2)
  %m = sched.buffer "mean" device bytes(256) at(768) live(2, 3)
  %r = sched.buffer "rstd" device bytes(256) at(1024) live(2, 3)
  %s = sched.buffer "shares" device bytes(512) at(1792) live(3, 3)
  sched.run compute "f" ins() outs(%x : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  sched.run compute "batch_norm_statistics" ins(%x : tensor<64xf32>) outs(%m : tensor<64xf32>, %r : tensor<64xf32>) versions [1] -> [1, 1] calls [#f]
  // expected-error @below {{V9: '' takes 'mean' into running statistics before it is synchronized}}
  sched.run compute "batch_statistics" ins(%m : tensor<64xf32>, %r : tensor<64xf32>) outs(%s : tensor<2x64xf32>) versions [1, 1] -> [1] calls [#f] role(update)
}
}

// -----

// Twice: other ranks would wait for what they do not do.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @v9_again device(2304) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "dscale" device bytes(256) at(512) live(1, 2)
  %b = sched.buffer "dbias" device bytes(256) at(768) live(1, 2)
  %ja = sched.buffer "joint_dscale" device bytes(256) at(1024) live(2, 3)
  %jb = sched.buffer "joint_dbias" device bytes(256) at(1280) live(2, 3)
  %ka = sched.buffer "again_dscale" device bytes(256) at(1536) live(3, 3)
  %kb = sched.buffer "again_dbias" device bytes(256) at(1792) live(3, 3)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait comm %ready
  sched.run comm "synchronize_sums" ins(%a : tensor<64xf32>, %b : tensor<64xf32>) outs(%ja : tensor<64xf32>, %jb : tensor<64xf32>) versions [1, 1] -> [1, 1] calls [#f] role(reduce)
  %first = sched.record comm "first"
  sched.wait compute %first
  %ready2 = sched.record compute "ready"
  sched.wait comm %ready2
  // expected-error @below {{V9: '' synchronizes 'joint_dscale', which other ranks have joined already}}
  sched.run comm "synchronize_sums" ins(%ja : tensor<64xf32>, %jb : tensor<64xf32>) outs(%ka : tensor<64xf32>, %kb : tensor<64xf32>) versions [1, 1] -> [1, 1] calls [#f] role(reduce)
  %done = sched.record comm "done"
  sched.wait compute %done
}
}

// -----

// Run again, as recomputation would.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @v9_rerun device(2304) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %m = sched.buffer "mean" device bytes(256) at(512) live(1, 2)
  %r = sched.buffer "rstd" device bytes(256) at(768) live(1, 2)
  %jm = sched.buffer "joint_mean" device bytes(256) at(1024) live(2, 2)
  %jr = sched.buffer "joint_rstd" device bytes(256) at(1280) live(2, 2)
  sched.run compute "batch_norm_statistics" ins() outs(%m : tensor<64xf32>, %r : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  // expected-error @below {{V9: '' meets other ranks where it runs as rerun}}
  sched.run compute "synchronize_statistics" ins(%m : tensor<64xf32>, %r : tensor<64xf32>) outs(%jm : tensor<64xf32>, %jr : tensor<64xf32>) versions [1, 1] -> [1, 1] calls [#f] role(rerun)
}
}

// -----

// Another size.
#f = #sched.call<"", [], "run">

module attributes {train.ranks = "ordered", train.norm_ranks = 2 : i64} {
sched.program @v9_size device(2304) host(0) base(256) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %a = sched.buffer "dscale" device bytes(256) at(512) live(1, 2)
  %b = sched.buffer "dbias" device bytes(256) at(768) live(1, 2)
  %ja = sched.buffer "joint_dscale" device bytes(256) at(1024) live(2, 2)
  %jb = sched.buffer "joint_dbias" device bytes(128) at(1280) live(2, 2)
  sched.run compute "f" ins() outs(%a : tensor<64xf32>, %b : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1, 1] calls [#f]
  %ready = sched.record compute "ready"
  sched.wait comm %ready
  // expected-error @below {{V9: '' makes 'tensor<32xf32>' of 'dbias', which is 'tensor<64xf32>'}}
  sched.run comm "synchronize_sums" ins(%a : tensor<64xf32>, %b : tensor<64xf32>) outs(%ja : tensor<64xf32>, %jb : tensor<32xf32>) versions [1, 1] -> [1, 1] calls [#f] role(reduce)
  %done = sched.record comm "done"
  sched.wait compute %done
}
}
