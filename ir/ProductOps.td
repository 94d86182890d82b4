// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products: the forward ops that carry a network's weights and most of its arithmetic.
#ifndef SLUICE_IR_PRODUCT_OPS
#define SLUICE_IR_PRODUCT_OPS

include "ir/ForwardOps.td"

def Train_ConvOp : Train_ForwardOp<"conv", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide"]>,
    DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isLayoutFixed"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv">.decl;
  let summary = "convolution of x [N,C,H,W] with w [O,C/group,kh,kw], or of volumes [N,C,D,H,W]";
  let description = [{
    `pads` are those in front of each spatial dimension, then those after: top, left, bottom, right.

    - C1: x and w both have rank 4 or 5; channels = group * w.dim(1); group divides O.
    - C2: every attribute list has its length and is positive (pads: not negative); the output is not empty.
    - C3: bias is [O].

    ```mlir
    %y = train.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>, group = 1 : i64}
        : (tensor<16x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<16x64x112x112xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Real:$w, Optional<Train_Vector>:$bias,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$group);
  let results = (outs Train_Real:$y);
}

def Train_ConvTransposeOp : Train_ForwardOp<"conv_transpose", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>,
    DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isLayoutFixed"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv", launch = "conv_backward_data">.decl;
  let summary = "transposed convolution of x [N,C,H,W] with w [C,O/group,kh,kw], or of volumes [N,C,D,H,W]";
  let description = [{
    The data gradient of the convolution with the same attributes that maps y to x. A bias is an elementwise add after it.

    - C1: x and w both have rank 4 or 5; x.dim(1) = w.dim(0); group divides it.
    - C2: `output_size`, an extent of each spatial dimension, is what strides, pads, dilations and output padding give.

    ```mlir
    %y = train.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64,
        output_size = array<i64: 64, 64>} : (tensor<4x128x32x32xf32>, tensor<128x64x2x2xf32>) -> tensor<4x64x64x64xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Real:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DenseI64ArrayAttr:$dilations, I64Attr:$group, DenseI64ArrayAttr:$output_size);
  let results = (outs Train_Real:$y);
}

def Train_MatmulOp : Train_ForwardOp<"matmul", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "mayStoreWide"]>,
    DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected">.decl # [{
    /// Whether the bias is one row, added as it is.
    bool addsRow();
    /// Whether the bias is a matrix like the result that the product is added to, in its bytes where nobody reads it later.
    bool addsToMatrix();
  }];
  let summary = "alpha * op(a) op(b) + beta * bias over the last two dimensions";
  let description = [{
    ONNX's Gemm and MatMul, and their gradients. Leading dimensions are batches that broadcast. Row-major. A bias of one row, with beta 1, has
    the result's element type, any other is f32. Kernels add to a bias of the result's shape and type in its bytes, with alpha and beta 1.

    - C1: a and b have rank 2 or more; the inner extents agree; batches broadcast.
    - C2: bias is [N], [1,N], [M,1] or [M,N], with rank-2 a and b only.

    ```mlir
    %y = train.matmul %x, %w, %b {transpose_a = false, transpose_b = true}
        : (tensor<16x512xf32>, tensor<10x512xf32>, tensor<10xf32>) -> tensor<16x10xf32>
    ```
  }];
  let arguments = (ins Train_Real:$a, Train_Real:$b, Optional<Train_Real>:$bias, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
      DefaultValuedAttr<BoolAttr, "false">:$transpose_b, DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "1.0f">:$beta);
  let results = (outs Train_Real:$y);
}

def Train_MatmulGeluOp : Train_Op<"matmul_gelu", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>,
    Pure, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>, Train_Recomputable, InferTypeOpAdaptorWithIsCompatible]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected", object = "_gelu", results = ["_gelu", ""]>.decl;
  let summary = "a matrix product, and train.gelu by tanh of it, without reading it again";
  let description = [{
    Created by fuse-epilogues from train.matmul and train.gelu, for floats of 16 bits on cuda alone. y is taken of what x is before it is rounded, so that
    train.gelu of x is near to y and not its bits: what computes y again is this op.

    - C1: train.matmul maps a, b and bias to x, of rank 2; bias is [N].
    - C2: the last extents of a, b and x are multiples of 8, the others more than 1.

    ```mlir
    %y, %x = train.matmul_gelu %a, %w, %b {transpose_a = false, transpose_b = true}
        : (tensor<16x512xf32>, tensor<64x512xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$a, Train_Real:$b, Optional<Train_Real>:$bias, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
      DefaultValuedAttr<BoolAttr, "false">:$transpose_b);
  let results = (outs Train_Real:$y, Train_Real:$x);
}

def Train_QuantizedMatmulOp : Train_Op<"quantized_matmul", [Train_OwnKernel, Pure, Train_Recomputable,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "mayStoreWide"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected">.decl # [{
    /// As train.matmul's.
    bool addsRow();
    bool addsToMatrix();
  }];
  let summary = "train.matmul with a right factor that is held in fewer bits";
  let description = [{
    Made by quantize-frozen on the host of products that read a weight which is held fixed (--frozen), and of the gradients of their other factors: the kernel makes
    floats of some columns of op(b) at a time, in its workspace, where train.dequantize would make all of them. No gradient passes to b.

    - C1: b has the bytes of the form, or is its matrix in bf16; the result has a's rows and op(b)'s columns, and inner extents agree.
    - C2: bias is as train.matmul's.

    ```mlir
    %y = train.quantized_matmul %x, %form {form = #train.quantized<[768, 3072] bits 4 group 64 along 0>}
        : (tensor<8x512x768xf32>, tensor<1327104xi8>) -> tensor<8x512x3072xf32>
    ```
  }];
  let arguments = (ins Train_Real:$a, AnyTypeOf<[Train_ByteVector, Train_Real]>:$b, Optional<Train_Real>:$bias, DefaultValuedAttr<BoolAttr, "false">:$transpose_b,
      DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "1.0f">:$beta, Train_QuantizedAttr:$form);
  let results = (outs Train_Real:$y);
  let hasVerifier = 1;
}

def Train_AttentionOp : Train_ForwardOp<"attention", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "isResultWide"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_AttentionMasks.decl # Train_KernelFacts<"FullyConnected", results = ["", "_logsumexp"]>.decl;
  let summary = "dropout(softmax(scale * q k^T + mask)) v, without a tensor of all scores";
  let description = [{
    Made by recompose from the ops that exporters write. Row i of a causal attention sees keys 0 to i alone; a row that sees no key is 0.
    Of `masks` the first is added to the scores; where the second is not above 0, a score is the number of the first alone and nothing goes back
    to q and k. Masks have no gradient. The draws of a `ratio` above 0 are those of train.dropout with this key of the probabilities. `logsumexp` is
    the logarithm of the sum of a row's exponentials, from which the backward op has the probabilities again; with a mask it is a row's largest
    score and the logarithm of the sum of exponentials of the distances to it, since a mask may hide a whole row by a large number. Of 16 bits, without mask and draws,
    it is cuDNN's on cuda.

    With `q_view`, `k_view` or `v_view` that operand is read through the view, and several may be parts of one tensor; with `y_order` the result
    is written as train.transpose with this permutation would give it.

    - C1: q [..,T,D], k [..,S,D] and v [..,S,C], or their views, have one rank of 2 or more and equal leading dimensions.
    - C2: there are two masks at most; each has rank 1 or more and broadcasts to [..,T,S].
    - C3: `y_order` is a permutation of y's dimensions that leaves the last one in its place.
    - C4: views cover each element of their tensor exactly once: those of q, k and v together where they are on one tensor, or of k and v, else each alone.

    ```mlir
    %y, %sums = train.attention %q, %k, %v {scale = 1.25e-1 : f32, causal = true} : (tensor<8x12x512x64xf32>, tensor<8x12x512x64xf32>,
        tensor<8x12x512x64xf32>) -> (tensor<8x12x512x64xf32>, tensor<8x12x512xf32>)
    %z, %more = train.attention %qkv, %qkv, %qkv {scale = 1.25e-1 : f32, q_view = #train.view<[8, 12, 512, 64] from 0 by [1179648, 64, 2304]>,
        k_view = #train.view<[8, 12, 512, 64] from 768 by [1179648, 64, 2304]>, v_view = #train.view<[8, 12, 512, 64] from 1536 by [1179648, 64, 2304]>,
        y_order = array<i64: 0, 2, 1, 3>} : (tensor<8x512x2304xf32>, tensor<8x512x2304xf32>, tensor<8x512x2304xf32>)
        -> (tensor<8x512x12x64xf32>, tensor<8x12x512xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$q, Train_Real:$k, Train_Real:$v, Variadic<Train_Float>:$masks, F32Attr:$scale,
      DefaultValuedAttr<BoolAttr, "false">:$causal, DefaultValuedAttr<F32Attr, "0.0f">:$ratio, DefaultValuedAttr<I64Attr, "0">:$key,
      OptionalAttr<Train_ViewAttr>:$q_view, OptionalAttr<Train_ViewAttr>:$k_view,
      OptionalAttr<Train_ViewAttr>:$v_view, OptionalAttr<DenseI64ArrayAttr>:$y_order);
  let results = (outs Train_Real:$y, Train_Float:$logsumexp);
}

#endif
