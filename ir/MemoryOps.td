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

// A recomputed op is the forward op cloned before its backward user, with the unit attribute `train.recompute`.

#endif
