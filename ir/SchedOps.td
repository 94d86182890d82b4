// SPDX-License-Identifier: Apache-2.0
// Ops of the sched dialect. schedule-streams creates all of them, assign-slots fills in places and lifetimes, codegen prints them.
#ifndef SLUICE_IR_SCHED_OPS
#define SLUICE_IR_SCHED_OPS

include "ir/SchedDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<SchedDialect, mnemonic, traits>;

def Sched_ProgramOp : Sched_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "one batch of a training step or of evaluation, in the order in which the CPU issues it";
  let description = [{
    All programs of a module share the arenas and the buffers that outlive a step. `arenas` are their sizes by the names of the arenas
    (runtime/StreamTable.h), of others than device and host where there are any; `base` the bytes at the start of the device arena that hold what
    outlives a step. They come from assign-slots. Where copies share a pool (`zvc:pool=BYTES`), `pool` are the bytes at the end of the host arena
    that are the pool's and no buffer's, and `spill` is the size of the arena that takes what does not fit.

    `computes` names the planned function that the program was scheduled from. It stays in the module, so that verify-schedule can
    compare the two; nothing else reads it.

    - C1: device, host and base are given together, and no size is negative; base <= device.
    - C2: pool and spill are given together, both positive; pool <= host.

    ```mlir
    sched.program @step device(9437184) host(4194304) base(65536) {
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<DenseI64ArrayAttr>:$arenas, OptionalAttr<I64Attr>:$base,
      OptionalAttr<I64Attr>:$pool, OptionalAttr<FlatSymbolRefAttr>:$planned);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `` custom<ArenaSizes>($arenas) (`base` `(` $base^ `)`)? (`pool` `(` $pool^ `)`)? (`computes` `(` $planned^ `)`)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isPlaced() { return getArenas().has_value(); }
    /// Size of an arena, 0 without one; of a placed program.
    int64_t bytesOf(Space space) { return (*getArenas())[static_cast<size_t>(space)]; }
    ::mlir::Block::OpListType &ops() { return getBody().front().getOperations(); }
  }];
}

def Sched_BufferOp : Sched_Op<"buffer", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "bytes of an arena; a transient of the step, or one of the kinds that outlive it";
  let description = [{
    Without a kind the buffer is a transient: assign-slots gives it an offset, unless the plan has, and the steps in which its bytes are in use, both
    ends included; before and after them other buffers may have the bytes. The kinds outlive the step and are the same bytes in every
    program of the module:

    - `variable(@w)`: the slot of a train.variable, in the arena that is its home.
    - `input("x")`: a model input or the target. On the host: the staging slot that the program's data reader fills between steps. On
      the device: `batch 0` is the batch that this run of the program reads, `batch 1` the one that arrives meanwhile; they change places after
      every batch. Its type is the function argument's: readers may take the bytes as another shape, files hold this one.
    - `result(0)`: the loss; `result(1)`: the count of correct samples; `result(2)`: the norm of the gradients; from `result(3)` on: the losses that
      the first one is the sum of. Read after the step.

    A `kept` transient is read once the program has run, as the outputs of @evaluate are, whose number it has: it lives to the last step, and its
    type is how it is read.

    - C1: bytes are positive.
    - C2: one kind at most; inputs lie on the device or the host, and only those on the device have a batch, 0 or 1.
    - C3: a lifetime is two steps, 1 <= first <= last, of a transient.
    - C4: an offset is not negative.
    - C5: results and what is kept lie on the device, variables there or where plans may keep what they offload.
    - C6: a type is a static tensor of as many bytes, of an input or of what is kept.
    - C7: what is kept is a transient with a type.

    ```mlir
    %conv1_y = sched.buffer "conv1_y" device bytes(4194304) at(65536) live(1, 9)
    %conv1_weight = sched.buffer "conv1.weight" device bytes(6912) variable(@conv1.weight) at(0)
    %images_next = sched.buffer "images" device bytes(196608) input("images") batch(1) at(7168) : tensor<4x3x64x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Sched_Space:$space, I64Attr:$bytes, OptionalAttr<FlatSymbolRefAttr>:$variable,
      OptionalAttr<StrAttr>:$input, OptionalAttr<I64Attr>:$batch, OptionalAttr<I64Attr>:$result, OptionalAttr<I64Attr>:$offset,
      OptionalAttr<I64Attr>:$first, OptionalAttr<I64Attr>:$last,
      OptionalAttr<TypeAttr>:$type, OptionalAttr<I64Attr>:$kept);
  let results = (outs Sched_Buffer:$buffer);
  let assemblyFormat = [{
    $name $space `bytes` `(` $bytes `)` (`variable` `(` $variable^ `)`)? (`input` `(` $input^ `)`)? (`batch` `(` $batch^ `)`)?
    (`result` `(` $result^ `)`)? (`kept` `(` $kept^ `)`)? (`at` `(` $offset^ `)`)? (`live` `(` $first^ `,` $last `)`)? (`:` $type^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool outlivesStep() { return getVariable() || getInput() || getResult(); }
    bool onDevice() { return getSpace() == Space::Device; }
    /// What it is, of what outlives a step.
    ::sluice::sched::Persistent persistent();
  }];
}

def Sched_RunOp : Sched_Op<"run", [AttrSizedOperandSegments]> {
  let summary = "enqueues the kernels of one op on the compute stream, what packs or unpacks a tensor on the codec stream, what all ranks compute together on the comm stream, or an update in host memory on the home stream";
  let description = [{
    `kernel` is the mnemonic of the train op that it came from, `calls` what that op's HasKernel says; a fused op has its region instead, with its
    `channels` and `sums`. `ins` are read and `outs` written, in the order of the op's operands and results; types are those of the values there
    (a view has its own). Operands that the op leaves out are left out here too. What a kernel updates appears in both lists: `update` reads gradient,
    parameter, states and writes parameter, states; `update_statistics` reads mean, rstd and both running vectors and writes the latter; `count_correct`
    reads logits, target and the count and writes it. The location names the ONNX node.

    `role` is the run's role in the step, `ids` says which of its ins names rows or classes. `backward` marks runs of the backward half,
    `gathers` those where one launch may take several such runs. `suffix` tells the object of several kernels of one node apart, `rule` names a region,
    `parameter` is the variable of an update.

    - C1: as many types as buffers in ins and in outs, and where some are pieces, as many firsts.
    - C2: each buffer has exactly the bytes of its type, so that a write leaves nothing of what was there before. Of a piece (`at`) they lie within
      the buffer, and the first is a multiple of 256 bytes into it.
    - C3: a kernel works on device memory, on the home stream on host memory.
    - C4: scratch is a buffer of its own: not among ins or outs, not persistent.
    - C5: as many versions as buffers in ins and in outs.
    - C6: kernels run on compute, those with the role encode or decode also on codec, those with the role update also on home, those with the role reduce or gather on
      comm alone, which has no others; no kernel runs on a copy stream.
    - C7: it has calls, or a region with channels and sums; a channel is one of ins, a sum one of outs.
    - C8: calls name ins and outs that are there, and where there is a scratch, one of them takes it.
    - C9: ids are i64 and among the ins.

    `at` says that not all of a buffer is meant but the piece of it that begins there; `in_firsts` and `out_firsts` hold that, -1 for whole buffers.

    `versions` say which content of each buffer is meant: 0 is what it held before the step, n what its n-th write in this step left; a write of
    a piece counts as one of the buffer. They are written down when the graph is scheduled, so that verify-schedule can tell from the program alone that every read sees the write
    that it was meant to see, in-place kernels included.

    ```mlir
    sched.run compute "softmax" ins(%x : tensor<16x10xf32>) outs(%y : tensor<16x10xf32>) versions [1] -> [1]
        calls [#sched.call<"Softmax", [array<i64: 16, 10>, 1 : i64, false], "forward", <in 0>, <out 0>>]
    sched.run compute "tanh" ins(%x at 512 : tensor<8x16xf32>) outs(%z : tensor<8x16xf32>) versions [1] -> [1] calls [...]
    ```
  }];
  let arguments = (ins Sched_Stream:$stream, StrAttr:$kernel, Variadic<Sched_Buffer>:$ins, Variadic<Sched_Buffer>:$outs, Optional<Sched_Buffer>:$scratch,
      TypeArrayAttr:$in_types, TypeArrayAttr:$out_types, OptionalAttr<DenseI64ArrayAttr>:$in_firsts, OptionalAttr<DenseI64ArrayAttr>:$out_firsts,
      DenseI64ArrayAttr:$in_versions, DenseI64ArrayAttr:$out_versions,
      TypedArrayAttrBase<Sched_CallAttr, "calls of the runtime">:$calls, DefaultValuedAttr<Sched_Role, "::sluice::sched::Role::Compute">:$role,
      OptionalAttr<Sched_IdsAttr>:$ids, UnitAttr:$backward, UnitAttr:$gathers, DefaultValuedStrAttr<StrAttr, "">:$suffix, OptionalAttr<FlatSymbolRefAttr>:$parameter, OptionalAttr<StrAttr>:$rule,
      OptionalAttr<DenseI64ArrayAttr>:$channels, OptionalAttr<I64Attr>:$sums);
  let regions = (region AnyRegion:$body);
  let assemblyFormat = [{
    $stream $kernel `ins` `` custom<TypedBuffers>($ins, $in_types, $in_firsts) `outs` `` custom<TypedBuffers>($outs, $out_types, $out_firsts)
    (`scratch` `(` $scratch^ `)`)? `versions` $in_versions `->` $out_versions `calls` $calls (`channels` $channels^)? (`sums` $sums^)?
    (`role` `(` $role^ `)`)? (`ids` $ids^)? attr-dict-with-keyword ($body^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType inType(unsigned i);
    ::mlir::RankedTensorType outType(unsigned i);
    /// Where the piece that is read or written begins in its buffer; none: all of the buffer is meant.
    std::optional<int64_t> inFirst(unsigned i) { return firstOf(getInFirstsAttr(), i); }
    std::optional<int64_t> outFirst(unsigned i) { return firstOf(getOutFirstsAttr(), i); }
    /// Whether it is a fused region, and then: whether an in is a [C] vector indexed by dimension 1; the type whose shape the region runs over.
    bool isFused() { return !getBody().empty(); }
    bool isChannel(unsigned i) { return ::llvm::is_contained(*getChannels(), static_cast<int64_t>(i)); }
    ::mlir::RankedTensorType domain() { return getOuts().size() > *getSums() ? outType(0) : inType(0); }
  }];
  let extraClassDefinition = [{
    ::mlir::RankedTensorType $cppClass::inType(unsigned i) {
      return ::mlir::cast<::mlir::RankedTensorType>(::mlir::cast<::mlir::TypeAttr>(getInTypes()[i]).getValue());
    }
    ::mlir::RankedTensorType $cppClass::outType(unsigned i) {
      return ::mlir::cast<::mlir::RankedTensorType>(::mlir::cast<::mlir::TypeAttr>(getOutTypes()[i]).getValue());
    }
  }];
}

def Sched_CopyOp : Sched_Op<"copy"> {
  let summary = "enqueues a copy between the device and another arena on the stream that the arena has for its direction";
  let description = [{
    With a codec the buffer outside the device holds the packed form (see train.offload), and the copy packs or unpacks on its way what is a tensor of `type`
    on the device: packed forms follow shapes and layouts.

    - C1: one buffer lies on the device, and the stream is that of the other's arena for this direction: d2h copies from the device to `host` and
      `spill`, h2d back.
    - C2: both buffers have the same number of bytes; with a codec the buffer outside the device has the size of the packed form.
    - C3: the buffer that is not on the device lies in the spill arena exactly if the codec is zvc with a pool.
    - C4: a codec comes with the type of a static tensor that it packs, of as many bytes as the buffer on the device, and with an arena that takes
      packed forms.

    `versions` as for sched.run: of what is copied, and of what the target holds afterwards.

    ```mlir
    sched.copy d2h %conv1_y -> %conv1_y_host codec("zfp:6" : tensor<16x64x112x112xf32>) versions 1 -> 1
    ```
  }];
  let arguments = (ins Sched_Stream:$stream, Sched_Buffer:$from, Sched_Buffer:$to, OptionalAttr<StrAttr>:$codec, OptionalAttr<TypeAttr>:$type,
      I64Attr:$from_version, I64Attr:$to_version);
  let assemblyFormat = [{
    $stream $from `->` $to (`codec` `(` $codec^ `:` $type `)`)? `versions` $from_version `->` $to_version attr-dict
  }];
  let hasVerifier = 1;
}

def Sched_RecordOp : Sched_Op<"record", [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "an event that happens when everything enqueued on the stream so far has run";
  let description = [{
    An event is recorded once, here, so SSA's dominance says that it is recorded before it is waited for.

    ```mlir
    %conv1_y_ready = sched.record compute "conv1_y_ready"
    ```
  }];
  let arguments = (ins Sched_Stream:$stream, StrAttr:$name);
  let results = (outs Sched_Event:$event);
  let assemblyFormat = "$stream $name attr-dict";
}

def Sched_WaitOp : Sched_Op<"wait"> {
  let summary = "what is enqueued on the stream from here on starts after the event";
  let description = [{
    - C1: the event belongs to another stream.

    ```mlir
    sched.wait d2h %conv1_y_ready
    ```
  }];
  let arguments = (ins Sched_Stream:$stream, Sched_Event:$event);
  let assemblyFormat = "$stream $event attr-dict";
  let hasVerifier = 1;
}

#endif
