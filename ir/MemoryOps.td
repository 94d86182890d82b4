// SPDX-License-Identifier: Apache-2.0
// Memory ops: the whole plan in SSA. apply-plan creates them, schedule-streams turns them into copies, events and lifetimes.
#ifndef SLUICE_IR_MEMORY_OPS
#define SLUICE_IR_MEMORY_OPS

include "ir/UpdateOps.td"

def Train_OffloadOp : Train_Op<"offload", [DeclareOpInterfaceMethods<Train_MovesContent, ["storageBytes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "copies x to another arena, on its stream for that direction; returns at once";
  let description = [{
    `home` names the arena, one of those that plans may use (runtime/StreamTable.h).

    x's bytes stay live until the train.await of the handle. A codec packs on the way: `fp16`, `bf16`, `int8` and `zfp`, with their parameters and masks as
    train.encode has them, send their packed form over the link into a host slot of that size; `zvc` leaves out
    zeros (bit patterns of zero, so it is exact) in the host slot, which has the raw size all the same. With `zvc:pool=BYTES` all such tensors
    share BYTES of host memory; what does not fit goes to their raw slots in the spill arena. With `variable` x goes into the slot of that
    variable, as its new value.

    - C1: the handle holds x's type.
    - C2: with a codec x has rank 2 or more and is f32, bf16 or f16; codecs fp16 and bf16 need f32.
    - C3: plans may use the arena, which takes packed forms where there is a codec.
    - C4: x is a value of `variable`, whose home is this arena, and there is no codec.

    ```mlir
    %h2 = train.offload %m2 {home = "storage", variable = @"conv1.weight/momentum"} : (tensor<64x3x3x3xf32>) -> !train.host<tensor<64x3x3x3xf32>>
    %h = train.offload %x {codec = "mask+zfp:6"} : (tensor<16x64x112x112xf32>) -> !train.host<tensor<16x64x112x112xf32>>
    ```
  }];
  let arguments = (ins Train_Tensor:$x, OptionalAttr<StrAttr>:$codec, DefaultValuedStrAttr<StrAttr, "host">:$home,
      OptionalAttr<FlatSymbolRefAttr>:$variable);
  let hasVerifier = 1;
  let results = (outs Train_HostHandle:$handle);
}
def Train_AwaitOp : Train_Op<"await", []> {
  let summary = "from here on, other ops may reuse the bytes that the awaited offload, encode or update at home read";
  let description = [{
    Compute waits here for the copy out, for the codec stream, or for what is updated at home.

    - C1: what it waits for is a train.offload, a train.encode or a train.update at home.
    - C2: each of them has one await at most, before its prefetch or decoding.

    ```mlir
    train.await %h : (!train.host<tensor<16x64x112x112xf32>>) -> ()
    ```
  }];
  let arguments = (ins AnyTypeOf<[Train_HostHandle, Train_Tensor]>:$handle);
  let hasVerifier = 1;
}
def Train_PrefetchOp : Train_Op<"prefetch", [DeclareOpInterfaceMethods<Train_MovesContent>]> {
  let summary = "copies an offloaded tensor back; the first reader waits for it";
  let description = [{
    The result's bytes are live from here on; the copy starts when the compute stream has reached this point.

    - C1: the result has the type that the handle holds.
    - C2: the handle comes from train.offload, or from train.read.

    ```mlir
    %x2 = train.prefetch %h : (!train.host<tensor<16x64x112x112xf32>>) -> tensor<16x64x112x112xf32>
    ```
  }];
  let arguments = (ins Train_HostHandle:$handle);
  let results = (outs Train_Tensor:$x);
  let hasVerifier = 1;
}

def Train_SaveGuardedChannelsOp : Train_Op<"save_guarded_channels", [Train_OwnKernel, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_guard", results = ["_guarded"]>.decl # Train_RoleIs<"Rebuild">.decl;
  let summary = "saves the channels of x that train.invert_batch_norm_leaky_relu could not rebuild";
  let description = [{
    A channel is guarded when 2^-24 * (1 + |bias / scale|) > 1e-5, which bounds the error of (x - mean) * rstd rebuilt from fp32 values; also
    when scale is 0 or a value is not finite. `half`, or x of f16: z comes back from half precision, so that 2^-11 and 1e-2 stand in for these numbers; there
    |scale| < 3e-3 is guarded, too, because such a channel lies among the subnormal halves. x of bf16: 2^-8 and 2e-2. They are saved in increasing order; the
    rest of `saved` is left as it was. A step with more guarded channels than slots fails, before any parameter that depends on them is updated.

    - C1: saved is [slots, x's elements per channel], of x's element type.
    - C2: scale and bias are [C] with C = x.dim(1).

    ```mlir
    %saved = train.save_guarded_channels %x, %scale, %bias : (tensor<8x32x4x4xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x128xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Vector:$scale, Train_Vector:$bias, UnitAttr:$half);
  let results = (outs Train_Real:$saved);
  let hasVerifier = 1;
}
def Train_InvertBatchNormLeakyReluOp : Train_Op<"invert_batch_norm_leaky_relu", [Train_OwnKernel, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_invert", results = ["_inverted"]>.decl # Train_RoleIs<"Rebuild">.decl;
  let summary = "x of z = leaky_relu((x - mean) * rstd * scale + bias), up to rounding";
  let description = [{
    u = z where z > 0, else z / alpha; x = (u - bias) / scale / rstd + mean. Guarded channels come from `saved`, see train.save_guarded_channels, also for `half`.
    After In-Place ABN (Rota Bulo et al. 2018) and Hascoet et al. (2019), with the true scale instead of |scale| + epsilon.

    - C1: alpha >= 1e-3.
    - C2: saved is [slots, z's elements per channel], of z's element type.
    - C3: x has z's type.

    ```mlir
    %x = train.invert_batch_norm_leaky_relu %z, %mean, %rstd, %scale, %bias, %saved {alpha = 1.0e-2 : f32} : (tensor<8x32x4x4xf32>, tensor<32xf32>,
        tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x128xf32>) -> tensor<8x32x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Real:$z, Train_Vector:$mean, Train_Vector:$rstd, Train_Vector:$scale, Train_Vector:$bias, Train_Real:$saved,
      F32Attr:$alpha, UnitAttr:$half);
  let results = (outs Train_Real:$x);
  let hasVerifier = 1;
}
def Train_CheckCancellationOp : Train_Op<"check_cancellation", [Train_OwnKernel, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_check", results = ["_maxima"]>.decl # Train_RoleIs<"Check">.decl;
  let summary = "ends the step when x, rebuilt by subtracting from y, is so small compared with y that cancellation has destroyed its digits";
  let description = [{
    y = x + f was rounded to 2^-24 of itself, so y - f is off by as much: by 2^-24 |y| / |x| relative to x. A step where max |x| < 2^-10 max |y|
    fails, which keeps what one subtraction loses below 6.2e-5 of the largest |x|. Sums of f16 and bf16 have 11 and 8 bits: max |x| < 2^-5 and 2^-2 max |y|
    fail, which keeps it below 1.6e-2. What is not finite passes: the loss will show it.
    Each thread writes its maxima into `maxima`.

    - C1: x and y have one type; maxima is [parts, 2].

    ```mlir
    %maxima = train.check_cancellation %x, %y : (tensor<8x32x4x4xf32>, tensor<8x32x4x4xf32>) -> tensor<512x2xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Real:$y);
  let results = (outs Train_Float:$maxima);
  let hasVerifier = 1;
}
def Train_EncodeOp : Train_Op<"encode", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_MovesContent>, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_encode">.decl # Train_RoleIs<"Encode">.decl;
  let summary = "packs x into fewer bytes on the device";
  let description = [{
    `mask` keeps one bit an element for gradients that only compare x with 0, which read it directly: !(x <= 0), or x > 0 with `positive`
    (they differ for NaN). It runs on the compute stream. `fp16`, `bf16`, `int8` and `zfp` (fixed rate: 8 bits a value, `zfp:RATE` for
    another) round; they run on the codec stream, and x's bytes stay live until the train.await of the result. `mask+NAME` of one of these keeps
    a mask in front of the packed form, in the same vector: what comes back is above 0 exactly where x was, and train.packed_mask is that mask.

    - C1: a mask has x's shape and layout and i1 elements; other codecs give the i8 vector whose length the codec has for x, which is f32 for `fp16` and `bf16`.

    ```mlir
    %bits = train.encode %y {codec = "mask"} : (tensor<16x64x56x56xf32>) -> tensor<16x64x56x56xi1>
    %packed = train.encode %x {codec = "zfp"} : (tensor<16x64x56x56xf32>) -> tensor<3211264xi8>
    %signed = train.encode %x {codec = "mask+zfp"} : (tensor<16x64x56x56xf32>) -> tensor<3662848xi8>
    ```
  }];
  let arguments = (ins Train_Real:$x, StrAttr:$codec, UnitAttr:$positive);
  let results = (outs Train_Tensor:$packed);
  let hasVerifier = 1;
}
def Train_DecodeOp : Train_Op<"decode", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_MovesContent>, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_decode">.decl # Train_RoleIs<"Decode">.decl;
  let summary = "unpacks what train.encode packed; the first reader waits for it";
  let description = [{
    Runs on the codec stream once compute has reached this point; the result's bytes are live from here on.

    - C1: a codec other than mask; `packed` is the vector that this codec has for x.

    ```mlir
    %x2 = train.decode %packed {codec = "zfp"} : (tensor<3211264xi8>) -> tensor<16x64x56x56xf32>
    ```
  }];
  let arguments = (ins Train_Tensor:$packed, StrAttr:$codec);
  let results = (outs Train_Real:$x);
  let hasVerifier = 1;
}

def Train_PackedMaskOp : Train_Op<"packed_mask", [DeclareOpInterfaceMethods<Train_View, ["firstByte"]>]> {
  let summary = "the mask in front of a packed form, for gradients that need no more of x than its side of 0";
  let description = [{
    A view: no kernel, the result is the piece of `packed` that begins at its first byte. apply-plan makes it where only such gradients follow, so that the unpacked
    values need not stay for them.

    - C1: `packed` is what train.encode with a codec `mask+NAME` gives; the mask has the shape and layout of what was packed and i1 elements.

    ```mlir
    %bits = train.packed_mask %signed : (tensor<3662848xi8>) -> tensor<16x64x56x56xi1>
    ```
  }];
  let arguments = (ins Train_Tensor:$packed);
  let results = (outs Train_Tensor:$mask);
  let hasVerifier = 1;
}

// A recomputed op is the forward op cloned before its backward user, with the unit attribute `train.recompute`; what an inversion of a sum runs,
// such clones and the subtraction, a train.fused, has `train.inverse`.

#endif
