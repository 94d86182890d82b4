// SPDX-License-Identifier: Apache-2.0
// Memory ops: the whole plan in SSA. apply-plan creates them, schedule-streams turns them into copies, events and lifetimes.
#ifndef SLUICE_IR_MEMORY_OPS
#define SLUICE_IR_MEMORY_OPS

include "ir/UpdateOps.td"

def Train_HostHandle : TypeDef<TrainDialect, "HostHandle"> {
  let mnemonic = "host";
  let summary = "a tensor in host memory";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

def Train_OffloadOp : Train_Op<"offload", []> {
  let summary = "copies x to host memory, on the stream for that direction; returns at once";
  let description = [{
    x's bytes stay live until the train.await of the handle.

    - C1: the handle holds x's type.

    ```mlir
    %h = train.offload %x : (tensor<16x64x112x112xf32>) -> !train.host<tensor<16x64x112x112xf32>>
    ```
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_HostHandle:$handle);
}
def Train_AwaitOp : Train_Op<"await", []> {
  let summary = "from here on, ops may reuse the bytes that the offload of this handle read";
  let description = [{
    Compute waits here for the copy out.

    - C1: every offload has one await at most, after it and before its prefetch.

    ```mlir
    train.await %h : (!train.host<tensor<16x64x112x112xf32>>) -> ()
    ```
  }];
  let arguments = (ins Train_HostHandle:$handle);
}
def Train_PrefetchOp : Train_Op<"prefetch", []> {
  let summary = "copies a tensor back from host memory; the first reader waits for it";
  let description = [{
    The result's bytes are live from here on; the copy starts when the compute stream has reached this point.

    - C1: the result has the type that the handle holds.

    ```mlir
    %x2 = train.prefetch %h : (!train.host<tensor<16x64x112x112xf32>>) -> tensor<16x64x112x112xf32>
    ```
  }];
  let arguments = (ins Train_HostHandle:$handle);
  let results = (outs Train_Tensor:$x);
}

def Train_SaveGuardedChannelsOp : Train_Op<"save_guarded_channels", [Train_Costed]> {
  let summary = "saves the channels of x that train.invert_batch_norm_leaky_relu could not rebuild";
  let description = [{
    A channel is guarded when 2^-24 * (1 + |bias / scale|) > 1e-5, which bounds the error of (x - mean) * rstd rebuilt from fp32 values; also
    when scale is 0 or a value is not finite. They are saved in increasing order; the rest of `aside` is left as it was.

    - C1: aside is [slots, x's elements per channel].
    - C2: scale and bias are [C] with C = x.dim(1).
    A step with more guarded channels than slots fails, before any parameter that depends on them is updated.

    ```mlir
    %aside = train.save_guarded_channels %x, %scale, %bias : (tensor<8x32x4x4xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x128xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Vector:$scale, Train_Vector:$bias);
  let results = (outs Train_Float:$aside);
  let hasVerifier = 1;
}
def Train_InvertBatchNormLeakyReluOp : Train_Op<"invert_batch_norm_leaky_relu", [Train_Costed]> {
  let summary = "x of z = leaky_relu((x - mean) * rstd * scale + bias), up to rounding";
  let description = [{
    u = z where z > 0, else z / alpha; x = (u - bias) / scale / rstd + mean. Guarded channels come from `aside`, see train.save_guarded_channels.
    After In-Place ABN (Rota Bulo et al. 2018) and Hascoet et al. (2019), with the true scale instead of |scale| + epsilon.

    - C1: alpha > 0.
    - C2: aside is [slots, z's elements per channel].

    ```mlir
    %x = train.invert_batch_norm_leaky_relu %z, %mean, %rstd, %scale, %bias, %aside {alpha = 1.0e-2 : f32} : (tensor<8x32x4x4xf32>, tensor<32xf32>,
        tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x128xf32>) -> tensor<8x32x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$z, Train_Vector:$mean, Train_Vector:$rstd, Train_Vector:$scale, Train_Vector:$bias, Train_Float:$aside,
      F32Attr:$alpha);
  let results = (outs Train_Float:$x);
  let hasVerifier = 1;
}

// A recomputed op is the forward op cloned before its backward user, with the unit attribute `train.recompute`.

#endif
