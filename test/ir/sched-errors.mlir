// RUN: sluice-opt --split-input-file --verify-diagnostics %s
// One broken constraint of SchedOps.td each, named for it.

// expected-error @below {{gives device, host and base together or none of them}}
sched.program @program_c1 device(4096) {
}

// -----

// expected-error @below {{has a base of 8192 bytes in a device arena of 4096}}
sched.program @program_c1_base device(4096) host(0) base(8192) {
}

// -----

// expected-error @below {{needs a pool within the host arena and a spill arena, or neither}}
sched.program @program_c2 device(4096) host(512) base(0) pool(256) {
}

// -----

// expected-error @below {{needs a pool within the host arena and a spill arena, or neither}}
sched.program @program_c2_size device(4096) host(512) spill(256) base(0) pool(1024) {
}

// -----

sched.program @buffer_c2_storage {
  // expected-error @below {{'a' is an input in the storage arena}}
  %a = sched.buffer "a" storage bytes(4) input("a")
}

// -----

sched.program @buffer_c2_spill {
  // expected-error @below {{'a' is an input in the spill arena}}
  %a = sched.buffer "a" spill bytes(4) input("a")
}

// -----

sched.program @copy_c3_slot {
  %a = sched.buffer "a" device bytes(256)
  %slot = sched.buffer "slot" host bytes(320)
  // expected-error @below {{of 'a' has a codec with a pool, but 'slot' lies in the host arena}}
  sched.copy d2h %a -> %slot codec("zvc:pool=4096" : tensor<8x8xf32>) versions 1 -> 1
}

// -----

sched.program @copy_c3_pool {
  %a = sched.buffer "a" device bytes(256)
  %slot = sched.buffer "slot" spill bytes(320)
  // expected-error @below {{of 'a' has no pool, but 'slot' lies in the spill arena}}
  sched.copy d2h %a -> %slot codec("zvc" : tensor<8x8xf32>) versions 1 -> 1
}

// -----

sched.program @copy_c2_pool {
  %a = sched.buffer "a" device bytes(256)
  %slot = sched.buffer "slot" spill bytes(320)
  // expected-error @below {{knows no codec 'zvc:pool=0'; there are fp16, zvc, zfp, int8 and bf16}}
  sched.copy d2h %a -> %slot codec("zvc:pool=0" : tensor<8x8xf32>) versions 1 -> 1
}

// -----

sched.program @buffer_c1 {
  // expected-error @below {{'a' has 0 bytes}}
  %a = sched.buffer "a" device bytes(0)
}

// -----

sched.program @buffer_c2 {
  // expected-error @below {{'a' is of several kinds}}
  %a = sched.buffer "a" device bytes(4) variable(@a) result(0)
}

// -----

sched.program @buffer_c2_batch {
  // expected-error @below {{'a' is an input on the device and needs batch 0 or 1}}
  %a = sched.buffer "a" device bytes(4) input("a")
}

// -----

sched.program @buffer_c2_staging {
  // expected-error @below {{'a' has a batch but is no input on the device}}
  %a = sched.buffer "a" host bytes(4) input("a") batch(0)
}

// -----

sched.program @buffer_c6_kind {
  // expected-error @below {{'a' has the type 'tensor<1xf32>', but only inputs and what is kept have one, a static tensor}}
  %a = sched.buffer "a" device bytes(4) : tensor<1xf32>
}

// -----

sched.program @buffer_c6_bytes {
  // expected-error @below {{'a' is a 'tensor<2xf32>' of 8 bytes, but it has 4}}
  %a = sched.buffer "a" host bytes(4) input("a") : tensor<2xf32>
}

// -----

sched.program @buffer_c3 {
  // expected-error @below {{'a' cannot live in steps 3 to 2}}
  %a = sched.buffer "a" device bytes(4) live(3, 2)
}

// -----

sched.program @buffer_c3_kind {
  // expected-error @below {{'a' cannot live in steps 1 to 2}}
  %a = sched.buffer "a" device bytes(4) variable(@a) live(1, 2)
}

// -----

sched.program @buffer_c4 {
  // expected-error @below {{'a' has the negative offset -256}}
  %a = sched.buffer "a" device bytes(4) at(-256)
}

// -----

sched.program @buffer_c5 {
  // expected-error @below {{'a' belongs on the device}}
  %a = sched.buffer "a" spill bytes(4) variable(@a)
}

// -----

sched.program @buffer_c5_result {
  // expected-error @below {{'a' belongs on the device}}
  %a = sched.buffer "a" host bytes(4) result(0)
}

// -----

sched.program @buffer_c5_kept {
  // expected-error @below {{'a' belongs on the device}}
  %a = sched.buffer "a" host bytes(4) kept(0) : tensor<1xf32>
}

// -----

sched.program @buffer_c7 {
  // expected-error @below {{'a' is kept, but outlives the step anyway}}
  %a = sched.buffer "a" device bytes(4) result(0) kept(0) : tensor<1xf32>
}

// -----

sched.program @buffer_c7_type {
  // expected-error @below {{'a' is kept, but has no type}}
  %a = sched.buffer "a" device bytes(4) kept(0)
}

// -----

sched.program @run_c1 {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'f' has 1 outs and 0 types}}
  "sched.run"(%a) <{stream = 0 : i32, kernel = "f", in_types = [], out_types = [], in_versions = array<i64>, out_versions = array<i64: 1>, calls = [#sched.call<"", [], "run">], operandSegmentSizes = array<i32: 0, 1, 0>}> ({}) : (!sched.buffer) -> ()
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c2 {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'f' uses 'a' as 'tensor<2xf32>' of 8 bytes, but it has 4}}
  sched.run compute "f" ins() outs(%a : tensor<2xf32>) versions [] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

// What is left of the buffer would be what some other step wrote.

sched.program @run_c2_part {
  %a = sched.buffer "a" device bytes(8)
  // expected-error @below {{'f' uses 'a' as 'tensor<1xf32>' of 4 bytes, but it has 8}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c2_piece_end {
  %a = sched.buffer "a" device bytes(516)
  // expected-error @below {{'f' uses the 8 bytes of 'tensor<2xf32>' at 512 of 'a', which has 516; pieces lie within and begin at a multiple of 256}}
  sched.run compute "f" ins(%a at 512 : tensor<2xf32>) outs() versions [0] -> [] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c2_piece_begin {
  %a = sched.buffer "a" device bytes(512)
  // expected-error @below {{'f' uses the 4 bytes of 'tensor<1xf32>' at 128 of 'a', which has 512; pieces lie within and begin at a multiple of 256}}
  sched.run compute "f" ins() outs(%a at 128 : tensor<1xf32>) versions [] -> [1] calls [#f]
}

// -----

sched.program @run_c1_firsts {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'f' has 1 outs, but says where 2 begin}}
  "sched.run"(%a) <{stream = 0 : i32, kernel = "f", in_types = [], out_types = [tensor<1xf32>], out_firsts = array<i64: 0, 0>, in_versions = array<i64>, out_versions = array<i64: 1>, calls = [#sched.call<"", [], "run">], operandSegmentSizes = array<i32: 0, 1, 0>}> ({}) : (!sched.buffer) -> ()
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c3 {
  %a = sched.buffer "a" host bytes(4)
  // expected-error @below {{'f' works on 'a', which is in host memory}}
  sched.run compute "f" ins(%a : tensor<1xf32>) outs() versions [0] -> [] calls [#f]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c4 {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'f' needs a scratch buffer of its own on the device}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) scratch(%a) versions [] -> [1] calls [#sched.call<"", [], "run", <scratch>>]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c5 {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'f' has 0 ins and 1 outs, but versions of 0 and 2}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1, 2] calls [#f]
}

// -----

sched.program @copy_c1 {
  %a = sched.buffer "a" device bytes(4)
  %b = sched.buffer "b" host bytes(4)
  // expected-error @below {{on h2d does not copy in that stream's direction}}
  sched.copy h2d %a -> %b versions 0 -> 1
}

// -----

sched.program @copy_c1_arena {
  %a = sched.buffer "a" device bytes(4)
  %b = sched.buffer "b" storage bytes(4)
  // expected-error @below {{on d2h does not copy in that stream's direction}}
  sched.copy d2h %a -> %b versions 0 -> 1
}

// -----

sched.program @copy_c4_arena {
  %a = sched.buffer "a" device bytes(256)
  %b = sched.buffer "b" storage bytes(128)
  // expected-error @below {{of 'a' of 256 bytes cannot pack 'tensor<8x8xf32>' with codec 'zfp' for the storage arena}}
  sched.copy storage %a -> %b codec("zfp" : tensor<8x8xf32>) versions 0 -> 1
}

// -----

sched.program @copy_c2 {
  %a = sched.buffer "a" device bytes(4)
  %b = sched.buffer "b" host bytes(8)
  // expected-error @below {{copies 'a' of 4 bytes to 'b' of 8}}
  sched.copy d2h %a -> %b versions 0 -> 1
}

// -----

sched.program @wait_c1 {
  %e = sched.record compute "e"
  // expected-error @below {{makes compute wait for an event of its own}}
  sched.wait compute %e
}

// -----

sched.program @run_c7_nothing {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' needs calls, or a region with channels and sums}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls []
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c7_both {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' needs calls, or a region with channels and sums}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#f] channels [] sums 0 {
    %one = arith.constant 1.0 : f32
    train.yield %one : f32
  }
}

// -----

sched.program @run_c7_channel {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'fused' has 0 ins, and channel 0}}
  sched.run compute "fused" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [] channels [0] sums 0 {
    %one = arith.constant 1.0 : f32
    train.yield %one : f32
  }
}

// -----

sched.program @run_c7_sums {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'fused' has 1 outs, and 2 sums}}
  sched.run compute "fused" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [] channels [] sums 2 {
    %one = arith.constant 1.0 : f32
    train.yield %one : f32
  }
}

// -----

sched.program @run_c8_operand {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' calls "run" with #sched.operand<in 0> of 0 ins and 1 outs}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [], "run", <in 0>>]
}

// -----

sched.program @run_c8_argument {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' calls "run" with #sched.operand<out 1> of 0 ins and 1 outs}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [#sched.operand<out 1>], "run", <out 0>>]
}

// -----

sched.program @run_c8_list {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' calls "g" with #sched.operand<in 1> of 0 ins and 1 outs}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [[#sched.operand<out 0>, #sched.operand<in 1>]], "g", <out 0>>]
}

// -----

sched.program @call_list {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{the function "g" cannot take [1]}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [[1]], "g", <out 0>>]
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c8_scratch {
  %a = sched.buffer "a" device bytes(4) result(0)
  %s = sched.buffer "s" device bytes(256)
  // expected-error @below {{'f' has a scratch that none of its calls takes}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) scratch(%s) versions [] -> [1] calls [#f]
}

// -----

sched.program @operand_number {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{in needs a number >= 0}}
  // expected-error @below {{failed to parse Sched_CallAttr parameter 'operands'}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [], "run", <in>>]
}

// -----

sched.program @operand_no_number {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{scratch has no number}}
  // expected-error @below {{failed to parse Sched_CallAttr parameter 'operands'}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [], "run", <scratch 1>>]
}

// -----

sched.program @window {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{a window has 2 or 3 extents, strides and dilations and twice as many pads, not 3, 2, 2 and 4}}
  // expected-error @below {{failed to parse Sched_CallAttr parameter 'arguments'}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [#sched.window<[1, 1, 1], [1, 1], [0, 0, 0, 0], [1, 1]>], "run">]
}

// -----

sched.program @codec {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{knows no codec of floats 'mask'}}
  // expected-error @below {{failed to parse Sched_CallAttr parameter 'arguments'}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [#sched.codec<"mask">], "run">]
}

// -----

sched.program @argument {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{the function "run" cannot take "text"}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", ["text"], "run">]
}

// -----

sched.program @class {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{the runtime has no class Pooling}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Pooling", [], "run">]
}

// -----

sched.program @too_few_arguments {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{Matmul takes 3 arguments (a, b, c), not 1}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Matmul", [array<i64: 8, 8>], "run">]
}

// -----

sched.program @too_many_arguments {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{Lamb takes 1 arguments (w), not 2}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Lamb", [array<i64: 8>, 1], "update">]
}

// -----

sched.program @argument_type {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'axis', argument 1 of Softmax, is never true}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Softmax", [array<i64: 8, 8>, true, true], "forward">]
}

// -----

sched.program @option_name {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{Conv has no option "alpha" (groups, bias, algorithm, type)}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Conv", [{alpha = 2.0 : f32}], "forward">]
}

// -----

sched.program @option_type {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'alpha', an option of Matmul, is never 2}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Matmul", [array<i64: 8, 8>, array<i64: 8, 8>, array<i64: 8, 8>, {alpha = 2}], "run">]
}

// -----

sched.program @options_of_none {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{Lamb takes 1 arguments (w), not 2}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Lamb", [array<i64: 8>, {alpha = 2}], "update">]
}

// -----

sched.program @options_of_a_function {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{the function "run" cannot take {alpha = 2 : i64}}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [{alpha = 2}], "run">]
}

// -----

sched.program @argument_enumerator {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'kind', argument 0 of Loss, is never #sched.enumerator<"LossKind", "Hinge">}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"Loss", [#sched.enumerator<"LossKind", "Hinge">, array<i64: 8, 8>], "forward">]
}

// -----

sched.program @run_c9 {
  %x = sched.buffer "x" device bytes(16)
  %y = sched.buffer "y" device bytes(16)
  // expected-error @below {{'f' has ids in 0, which are no i64}}
  sched.run compute "f" ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) versions [0] -> [1] calls [#sched.call<"", [], "g", <out 0>>] ids<in 0 below 8>
}

// -----

sched.program @run_c9_missing {
  %y = sched.buffer "y" device bytes(16)
  // expected-error @below {{'f' has ids in 1, which are no i64}}
  sched.run compute "f" ins() outs(%y : tensor<4xf32>) versions [] -> [1] calls [#sched.call<"", [], "g", <out 0>>] ids<in 1 below 8>
}

// -----

sched.program @run_c9_limit {
  %y = sched.buffer "y" device bytes(16)
  // expected-error @below {{ids are an in >= 0 below a limit >= 1, not in 0 below 0}}
  sched.run compute "f" ins() outs(%y : tensor<4xf32>) versions [] -> [1] calls [#sched.call<"", [], "g", <out 0>>] ids<in 0 below 0>
}

// -----

sched.program @run_c6_role {
  %x = sched.buffer "x" device bytes(16)
  %y = sched.buffer "y" device bytes(16)
  // expected-error @below {{'encode' does not run on codec}}
  sched.run codec "encode" ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) versions [0] -> [1] calls [#sched.call<"", [], "g", <out 0>>]
}

// -----

sched.program @run_c6_reduce {
  %x = sched.buffer "x" device bytes(16)
  // expected-error @below {{'all_reduce' does not run on compute}}
  sched.run compute "all_reduce" ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) versions [0] -> [1] calls [#sched.call<"", [], "g", <out 0>>] role(reduce)
}

// -----

sched.program @run_c6_compute {
  %x = sched.buffer "x" device bytes(16)
  // expected-error @below {{'relu' does not run on comm}}
  sched.run comm "relu" ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) versions [0] -> [1] calls [#sched.call<"", [], "g", <out 0>>]
}

// -----

sched.program @no_parameter {
  %a = sched.buffer "a" device bytes(4) result(0)
  // expected-error @below {{'f' calls "updateSgd" with #sched.operand<parameter> of 0 ins and 1 outs without a parameter}}
  sched.run compute "f" ins() outs(%a : tensor<1xf32>) versions [] -> [1] calls [#sched.call<"", [], "updateSgd", <parameter>, <out 0>>]
}
