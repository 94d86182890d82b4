// SPDX-License-Identifier: Apache-2.0
// What a decode step, which computes one token of each text of a batch, has in place of the tokens before it: variables with `train.cache`, and the place of
// its token in each text. build-decode creates these ops; nothing is differentiated through them. Their classes are in a header of their own, ir/Cache.h.
#ifndef SLUICE_IR_CACHE_OPS
#define SLUICE_IR_CACHE_OPS

include "ir/UpdateOps.td"

def Train_CacheRowsOp : Train_Op<"cache_rows", [Train_OwnKernel, MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>, Train_ChangesVariables,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_cached">.decl;
  let summary = "rows join a cache: the first ones of all texts, or with `places` one row of each at its place";
  let description = [{
    All other rows of the cache stay as they are. With `view` x is read through it, as operands of train.attention are.

    - C1: `cache` is a variable with `train.cache`.
    - C2: x, or its view, is [B,G,R,D] and has the elements of the cache [B,G,N,D], R <= N; with `places`, B of them, R is 1.

    ```mlir
    %c2 = train.cache_rows %k, %c : (tensor<4x2x128x64xf32>, tensor<4x2x512x64xf32>) -> tensor<4x2x512x64xf32>
    %c2 = train.cache_rows %k, %places, %c : (tensor<4x2x1x64xf32>, tensor<4xi64>, tensor<4x2x512x64xf32>) -> tensor<4x2x512x64xf32>
    ```
  }];
  let arguments = (ins Train_Tensor:$x, Optional<Train_Ids>:$places, Train_Tensor:$cache, OptionalAttr<Train_ViewAttr>:$view);
  let results = (outs Train_Tensor:$stored);
  let hasVerifier = 1;
}

def Train_CachedAttentionOp : Train_Op<"cached_attention", [Pure, Train_OwnKernel, DeclareOpInterfaceMethods<Train_Costed, ["flops"]>]> {
  let extraClassDeclaration = Train_AttentionMasks.decl # Train_KernelFacts<"FullyConnected">.decl;
  let summary = "train.attention of one row of each text, over the keys and values up to its place";
  let description = [{
    Queries of several heads may share keys and values, neighbours among them: H is a multiple of G. What stands behind a place in the caches is not read. `masks` are
    those of train.attention, of this one row.

    - C1: q, or its view, is [B,H,1,D], k [B,G,N,D], v [B,G,N,C], with H a multiple of G, and y [B,H,1,C]; there are B places.
    - C2: there are two masks at most; each has rank 1 or more and broadcasts to [B,H,1,N].

    ```mlir
    %y = train.cached_attention %q, %k, %v, %places {scale = 1.25e-1 : f32} : (tensor<4x8x1x64xf32>, tensor<4x2x512x64xf32>, tensor<4x2x512x64xf32>, tensor<4xi64>) -> tensor<4x8x1x64xf32>
    ```
  }];
  let arguments = (ins Train_Float:$q, Train_Float:$k, Train_Float:$v, Train_Ids:$places, Variadic<Train_Float>:$masks, F32Attr:$scale,
      OptionalAttr<Train_ViewAttr>:$q_view);
  let results = (outs Train_Float:$y);
  let hasVerifier = 1;
}

#endif
