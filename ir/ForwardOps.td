// SPDX-License-Identifier: Apache-2.0
// Forward tensor ops with kernels of their own, but for products and normalizations. The frontend creates them; all live until schedule-streams.
#ifndef SLUICE_IR_FORWARD_OPS
#define SLUICE_IR_FORWARD_OPS

include "ir/VariableOps.td"

/// A forward op whose result type follows from its operands and attributes (encodings aside).
class Train_ForwardOp<string mnemonic, list<Trait> traits = []> : Train_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<Train_Differentiable>, Train_Costed, Train_Recomputable,
    InferTypeOpAdaptorWithIsCompatible] # traits>;
/// A forward op whose result type says something that operands and attributes do not.
class Train_ShapedOp<string mnemonic, list<Trait> traits = []> : Train_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<Train_Differentiable>, Train_Costed, Train_Recomputable] # traits> {
  let hasVerifier = 1;
}

def Train_MaxPoolOp : Train_ForwardOp<"max_pool", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Pool", results = ["", "_indices"]>.decl # Train_MemoryWork<"Pool">.decl;
  let summary = "maximum over windows, and which window position won";
  let description = [{
    Over two or three spatial dimensions. `indices` counts positions inside the window, row by row; it is all that the backward op reads.

    - C1: x has rank 4 or 5; every list has its length; every window meets the image.
    - C2: indices are i8 when the window has fewer than 256 positions, else i32.

    ```mlir
    %y, %indices = train.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>,
        dilations = array<i64: 1, 1>, ceil_mode = false} : (tensor<16x64x32x32xf32>) -> (tensor<16x64x16x16xf32>, tensor<16x64x16x16xi8>)
    ```
  }];
  let arguments = (ins Train_Real:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$ceil_mode);
  let results = (outs Train_Real:$y, Train_Tensor:$indices);
}

def Train_AveragePoolOp : Train_ForwardOp<"average_pool", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Pool">.decl # Train_MemoryWork<"Pool">.decl;
  let summary = "mean over windows";
  let description = [{
    Over two or three spatial dimensions. Global average pooling is a window as large as the image. Without `dilations` they are 1.

    - C1: x has rank 4 or 5; every list has its length; every window meets the image.

    ```mlir
    %y = train.average_pool %x {kernel = array<i64: 7, 7>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, ceil_mode = false,
        count_include_pad = false} : (tensor<16x512x7x7xf32>) -> tensor<16x512x1x1xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DefaultValuedAttr<BoolAttr, "false">:$ceil_mode, DefaultValuedAttr<BoolAttr, "false">:$count_include_pad,
      OptionalAttr<DenseI64ArrayAttr>:$dilations);
  let results = (outs Train_Real:$y);
}

def Train_SoftmaxOp : Train_ForwardOp<"softmax", [Train_OwnKernel, Train_PrecisionAware]> {
  let summary = "softmax, or its logarithm, along one dimension";
  let description = [{
    When it is the model's last op before a softmax cross-entropy, the frontend lets the loss absorb it.

    - C1: 0 <= axis < rank.

    ```mlir
    %y = train.softmax %x {axis = 1 : i64, logarithm = false} : (tensor<16x10xf32>) -> tensor<16x10xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$logarithm);
  let results = (outs Train_Real:$y);
}

def Train_ConcatOp : Train_ForwardOp<"concat", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_Follow.decl # Train_KernelFacts<"Concat", launch = "insert">.decl;
  let summary = "tensors side by side along one dimension";
  let description = [{
    - C1: one operand at least; all extents but that of `axis` agree.

    ```mlir
    %y = train.concat %a, %b {axis = 1 : i64} : (tensor<8x64x28x28xf32>, tensor<8x32x28x28xf32>) -> tensor<8x96x28x28xf32>
    ```
  }];
  let arguments = (ins Variadic<Train_Real>:$xs, I64Attr:$axis);
  let results = (outs Train_Real:$y);
  let hasFolder = 1;
}

def Train_SliceOp : Train_ForwardOp<"slice", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware,
    DeclareOpInterfaceMethods<Train_View, ["sharesBytes", "firstByte"]>, DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let extraClassDeclaration = Train_Follow.decl # Train_KernelFacts<"Other", launch = "extract">.decl # [{
    /// Where the slab begins among x's bytes, where it is one piece of them that kernels can take in place of a slot; else none.
    std::optional<int64_t> contiguousAt();
  }];
  let summary = "the slab [start, start + length) of one dimension";
  let description = [{
    The gradient of concat, and ONNX Split and Slice with step 1. `piece`: no kernel, the result is a piece of x's bytes; linearize says where that
    keeps no bytes that a copy would have let go.

    - C1: 0 <= start, 0 < length, start + length <= extent of `axis`.
    - C2: a piece is contiguous in x's layout and begins at a multiple of 256 bytes, as slots do.

    ```mlir
    %y = train.slice %x {axis = 1 : i64, start = 64 : i64, length = 32 : i64} : (tensor<8x96x28x28xf32>) -> tensor<8x32x28x28xf32>
    %z = train.slice %y {axis = 0 : i64, length = 4 : i64, piece, start = 4 : i64} : (tensor<8x32x28x28xf32>) -> tensor<4x32x28x28xf32>
    ```
  }];
  let arguments = (ins Train_RealOrIds:$x, I64Attr:$axis, I64Attr:$start, I64Attr:$length, UnitAttr:$piece);
  let results = (outs Train_RealOrIds:$y);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Train_ReshapeOp : Train_ShapedOp<"reshape", [Train_View, Train_PrecisionAware]> {
  let summary = "the same elements in the same logical order under another shape";
  let description = [{
    A view: no kernel, the result shares its operand's bytes. Both sides are row-major, or, where batch and channels stay as they are, both
    NHWC; assign-layouts puts a train.reorder before it where the operand is NHWC and order matters.

    - C1: both shapes have the same number of elements.
    - C2: both sides have one layout; with NHWC also their first two dimensions agree.

    ```mlir
    %y = train.reshape %x : (tensor<16x64x16x16xf32>) -> tensor<16x16384xf32>
    ```
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let hasFolder = 1;
}

def Train_TransposeOp : Train_ForwardOp<"transpose", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_View, ["sharesBytes"]>, Train_PrecisionAware]> {
  let summary = "logical dimensions permuted: y.dim(i) = x.dim(permutation[i])";
  let description = [{
    A view where both layouts put the elements in the same order: to [N,H,W,C] and back where images are NHWC.

    - C1: permutation is one of 0..rank-1.

    ```mlir
    %y = train.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<4x8x16xf32>) -> tensor<4x16x8xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Train_Real:$y);
  let extraClassDeclaration = "bool gathers() { return true; }";
  let hasFolder = 1;
}

def Train_ReorderOp : Train_ShapedOp<"reorder", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_View, ["sharesBytes"]>, Train_PrecisionAware, Train_LayoutAware]> {
  let summary = "the same tensor in another physical layout";
  let description = [{
    Created by assign-layouts. A view where both layouts put the elements in the same order (one channel, or a 1x1 image).

    - C1: both types differ in nothing but their encoding.

    ```mlir
    %y = train.reorder %x : (tensor<16x64x7x7xf32, #train.layout<nhwc>>) -> tensor<16x64x7x7xf32>
    ```
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let extraClassDeclaration = "::sluice::train::LayoutPreference layoutPreference() { return ::sluice::train::LayoutPreference::RowMajor; }\nbool gathers() { return true; }";
}

def Train_CastOp : Train_Op<"cast", [Train_OwnKernel, Pure, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "isResultWide"]>,
    DeclareOpInterfaceMethods<Train_Differentiable>, Train_Costed, Train_Recomputable]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_cast">.decl # "::llvm::StringRef resultSuffix(unsigned, bool);\nbool gathers() { return true; }";
  let summary = "the same tensor in another type: integers as f32 or back, or between floating-point types, rounded to nearest even";
  let description = [{
    Created by the frontend where integers that are data take part in arithmetic (masks of 0 and 1) or are the result of some and name rows
    of a table, and by assign-precision, once for each tensor, just before its first reader. A convolution's weights change their order with it, to what its engines read: [O,H,W,I], which is the encoding nhwc
    of [O,I,H,W].

    What becomes an integer loses its fraction; what no integer holds becomes the smallest, which names no row. No gradient passes.

    - C1: both types have one shape and element types that differ; integers become f32, and f32 alone becomes integers.
    - C2: a result of 16 bits may have more of one dimension than an f32 operand, with zeros after those: channels of images and weights of rank 4
      or 5 with layout nhwc, any dimension of a matrix or vector.

    ```mlir
    %half = train.cast %w : (tensor<64x32x3x3xf32>) -> tensor<64x32x3x3xbf16, #train.layout<nhwc>>
    ```
  }];
  let arguments = (ins Train_RealOrIds:$x);
  let results = (outs Train_RealOrIds:$y);
  let hasVerifier = 1;
}

def Train_TopOp : Train_ForwardOp<"top", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Costed, ["flops"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", results = ["_ids"]>.decl;
  let summary = "positions of the `count` largest, or smallest, elements of every row of x, the best one first";
  let description = [{
    Rows lie along the last dimension. Of equal elements the one in front comes first, with `last` the one after; NaN is larger than any
    number. Positions have no gradient: what stands there is train.pick's.

    - C1: x has rank 1 at least; 1 <= count <= the extent of a row.

    ```mlir
    %ids = train.top %x {count = 2 : i64, smallest = false, last = false} : (tensor<8x16xf32>) -> tensor<8x2xi64>
    ```
  }];
  let arguments = (ins Train_Float:$x, I64Attr:$count, DefaultValuedAttr<BoolAttr, "false">:$smallest, DefaultValuedAttr<BoolAttr, "false">:$last);
  let results = (outs Train_Ids:$ids);
}

def Train_PickOp : Train_ForwardOp<"pick", [Train_OwnKernel]> {
  let summary = "elements of every row of x, by their positions in it";
  let description = [{
    Rows lie along the last dimension: ONNX GatherElements there. Kernels use ids as addresses and look at each: one that names no element
    ends the step.

    - C1: ids are i64, and x and ids agree in all dimensions but the last, in which both have elements.

    ```mlir
    %y = train.pick %x, %ids : (tensor<8x16xf32>, tensor<8x2xi64>) -> tensor<8x2xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Ids:$ids);
  let results = (outs Train_Float:$y);
  let extraClassDeclaration = "::sluice::sched::IdsAttr ids();";
}

def Train_EmbeddingOp : Train_ForwardOp<"embedding", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide"]>,
    DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "bytesMoved"]>]> {
  let summary = "the rows of a table that ids name, in the order of the ids";
  let description = [{
    ONNX Gather along dimension 0 with indices that are data. Kernels use ids as addresses, and look at each: one that names no row ends the
    step. What an input of the step brings programs have compared with the table's first
    extent before, and constants the frontend.

    - C1: the table has rank 1 at least; ids are i64; the result is ids' shape followed by a row's.

    ```mlir
    %y = train.embedding %table, %ids : (tensor<1000x64xf32>, tensor<8x16xi64>) -> tensor<8x16x64xf32>
    ```
  }];
  let arguments = (ins Train_Real:$table, Train_Ids:$ids);
  let results = (outs Train_Real:$y);
  let extraClassDeclaration = "::sluice::sched::IdsAttr ids();";
}

def Train_ScatterRowsOp : Train_ShapedOp<"scatter_rows", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let summary = "for every row of the result the sum, or the largest elements, of the rows of x that ids put there";
  let description = [{
    What train.embedding takes apart, put together: ONNX's scatters with indices that are data are made of it. Summands come in the order of the
    ids, in double, so that the sums are the same bits whatever the threads. Rows that no id names are 0, or with `largest` negative infinity;
    the largest has no gradient. Kernels look at each id as those of train.embedding do.

    - C1: the embedding of a table of y's shape by ids has x's shape.

    ```mlir
    %y = train.scatter_rows %x, %ids : (tensor<16x8xf32>, tensor<16xi64>) -> tensor<100x8xf32>
    %last = train.scatter_rows %positions, %ids {largest = true} : (tensor<16x1xf32>, tensor<16xi64>) -> tensor<100x1xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Ids:$ids, DefaultValuedAttr<BoolAttr, "false">:$largest);
  let results = (outs Train_Float:$y);
}

def Train_ResizeOp : Train_ForwardOp<"resize", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let summary = "spatial resize of x [N,C,H,W] to `size`, nearest or bilinear";
  let description = [{
    - C1: x has rank 4; size is two positive extents; scales are positive.

    ```mlir
    %y = train.resize %x {size = array<i64: 64, 64>, scale_h = 2.0 : f32, scale_w = 2.0 : f32, mode = 0 : i32, coordinates = 3 : i32, nearest = 2 : i32}
        : (tensor<4x64x32x32xf32>) -> tensor<4x64x64x64xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, DenseI64ArrayAttr:$size, F32Attr:$scale_h, F32Attr:$scale_w, Train_ResizeMode:$mode,
      Train_Coordinates:$coordinates, Train_NearestMode:$nearest);
  let results = (outs Train_Real:$y);
}

def Train_BroadcastToOp : Train_ShapedOp<"broadcast_to", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>]> {
  let summary = "x repeated to a larger shape by numpy's rules, times `factor`";
  let description = [{
    Gradient of train.sum_to; row-major.

    - C1: x broadcasts to the result's shape.

    ```mlir
    %y = train.broadcast_to %x {factor = 1.0 : f32} : (tensor<16x64x1x1xf32>) -> tensor<16x64x7x7xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, DefaultValuedAttr<F32Attr, "1.0f">:$factor);
  let results = (outs Train_Real:$y);
  let hasFolder = 1;
}

def Train_SumToOp : Train_ShapedOp<"sum_to", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>]> {
  let summary = "sum of x over the dimensions that the smaller result shape broadcasts, times `factor`";
  let description = [{
    Gradient of a broadcast; with factor 1/count, a mean. Row-major.

    - C1: the result's shape broadcasts to x's.

    ```mlir
    %y = train.sum_to %x {factor = 1.0 : f32} : (tensor<16x10xf32>) -> tensor<10xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, DefaultValuedAttr<F32Attr, "1.0f">:$factor);
  let results = (outs Train_Float:$y);
}

#endif
