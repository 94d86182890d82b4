// RUN: sluice-opt %s --sluice-verify-schedule --split-input-file --verify-diagnostics
// V9 where each rank has a share of a parameter: it is gathered for what reads it, before its update, and by nothing else. Each program differs from the first one in one thing.

#f = #sched.call<"", [], "run">

// As it is made.
module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @gathered device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 2)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// In a module whose parameters are whole in each rank.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_unasked device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 2)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  // expected-error @below {{V9: '' gathers 'w', which is no share of a parameter}}
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// Of a parameter that is no share.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32>
sched.program @v9_no_share device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 2)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  // expected-error @below {{V9: '' gathers 'w', which is no share of a parameter}}
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// Into more than it is a share of.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_length device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(512) at(1024) live(1, 1)
  %g = sched.buffer "g" device bytes(256) at(1536) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1792) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  // expected-error @below {{V9: '' gathers 'tensor<32xf32>' of 'w' into 'tensor<8x16xf32>', it is 'tensor<32xf32>' of 'tensor<8x8xf32>'}}
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x16xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins() outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// A share that an op reads as if it were all.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_share_read device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 1)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  // expected-error @below {{V9: '' reads 'w', a share, without the shares of other ranks}}
  sched.run compute "f" ins(%w : tensor<32xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [0] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}

// -----

// Gathered once more after its update.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_after device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 5)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "updated"
  sched.wait comm %r2
  // expected-error @below {{V9: '' gathers 'w' after its update}}
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "again"
  sched.wait compute %d2
}
}

// -----

// Gathered in place at the end, as whole parameters are.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_in_place device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 2)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(gather)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
  %r2 = sched.record compute "updated"
  sched.wait comm %r2
  // expected-error @below {{V9: '' gathers 'w' in place, of which there is but a share}}
  sched.run comm "all_gather" ins(%w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1] -> [2] calls [#f] role(gather)
  %d2 = sched.record comm "again"
  sched.wait compute %d2
}
}

// -----

// As a sum.
#f = #sched.call<"", [], "run">

module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 2 : i64} {
train.variable @w role(parameter) init(zero) : tensor<32xf32> {train.whole = tensor<8x8xf32>}
sched.program @v9_role device(2048) host(0) base(1024) {
  %loss = sched.buffer "loss" device bytes(4) result(0) at(0)
  %w = sched.buffer "w" device bytes(128) variable(@w) at(256)
  %room = sched.buffer "room" device bytes(256) variable(@room) at(768)
  %whole = sched.buffer "whole" device bytes(256) at(1024) live(1, 2)
  %g = sched.buffer "g" device bytes(256) at(1280) live(2, 3)
  %share = sched.buffer "share" device bytes(128) at(1536) live(3, 4)
  %r0 = sched.record compute "free"
  sched.wait comm %r0
  // expected-error @below {{V9: '' meets other ranks where it runs as reduce}}
  sched.run comm "gather_shares" ins(%w : tensor<32xf32>) outs(%whole : tensor<8x8xf32>) versions [0] -> [1] calls [#f] role(reduce)
  %d0 = sched.record comm "gathered"
  sched.wait compute %d0
  sched.run compute "f" ins(%whole : tensor<8x8xf32>) outs(%g : tensor<64xf32>, %loss : tensor<f32>) versions [1] -> [1, 1] calls [#f]
  %r1 = sched.record compute "ready"
  sched.wait comm %r1
  sched.run comm "reduce_scatter" ins(%g : tensor<64xf32>, %room : tensor<64xf32>) outs(%share : tensor<32xf32>, %room : tensor<64xf32>) versions [1, 0] -> [1, 1] calls [#f] role(reduce)
  %d1 = sched.record comm "done"
  sched.wait compute %d1
  sched.run compute "update" ins(%share : tensor<32xf32>, %w : tensor<32xf32>) outs(%w : tensor<32xf32>) versions [1, 0] -> [1] calls [#f] role(update) attributes {parameter = @w}
}
}
