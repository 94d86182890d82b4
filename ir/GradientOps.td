// SPDX-License-Identifier: Apache-2.0
// Gradient ops with kernels of their own, one per backward kernel. build-backward creates them through the Differentiable methods in
// the files of rules. What an op reads of the forward pass are its operands: that list is what the planner plans. Gradients of matmul,
// concat, slice, reshape and conv_transpose are forward ops again; those of elementwise ops are in ElementwiseOps.td.
#ifndef SLUICE_IR_GRADIENT_OPS
#define SLUICE_IR_GRADIENT_OPS

include "ir/ElementwiseOps.td"

class Train_GradientOp<string mnemonic, list<Trait> traits = []> : Train_Op<mnemonic, [Pure, Train_Costed] # traits> {
  let hasVerifier = 1;
}

def Train_ConvBackwardDataOp : Train_GradientOp<"conv_backward_data", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isLayoutFixed"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv", object = "_dx", results = ["_dx"]>.decl;
  let summary = "gradient of a convolution with respect to its input";
  let description = [{
    - C1: the convolution with these attributes maps dx and w to dy.

    ```mlir
    %dx = train.conv_backward_data %dy, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
        : (tensor<8x64x14x14xf32>, tensor<64x32x3x3xf32>) -> tensor<8x32x14x14xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DenseI64ArrayAttr:$dilations, I64Attr:$group);
  let results = (outs Train_Real:$dx);
}
def Train_ConvBackwardWeightOp : Train_GradientOp<"conv_backward_weight", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isResultLayoutFixed"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv", object = "_dw", results = ["_dw", "_db"]>.decl;
  let summary = "gradient of a convolution with respect to its weights, and to its bias where it has one";
  let description = [{
    dw of 16 bits lies as engines leave it, in NHWC order, and a train.cast makes of it what updates read: on cuda, where one launch takes several of
    these.

    - C1: the convolution with these attributes maps x, dw and dbias to dy.

    ```mlir
    %dw = train.conv_backward_weight %dy, %x {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
        : (tensor<8x64x14x14xf32>, tensor<8x32x14x14xf32>) -> tensor<64x32x3x3xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$x, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DenseI64ArrayAttr:$dilations, I64Attr:$group);
  let results = (outs Train_Real:$dw, Optional<Train_Vector>:$dbias);
}
def Train_MatmulGeluBackwardOp : Train_GradientOp<"matmul_gelu_backward", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected", object = "_dx", results = ["_dx", "_db"]>.decl;
  let summary = "a matrix product that is the gradient of train.gelu by tanh, times its slope at x, and the sum of that over its rows";
  let description = [{
    dx = train.gelu_backward (train.matmul a, b), x. Created by fuse-epilogues, for floats of 16 bits on cuda alone; dbias, where somebody reads the sum, is
    rounded to 16 bits.

    - C1: train.matmul maps a and b to dx, of rank 2; x has its shape, dbias is [N].
    - C2: the last extents of a, b and x are multiples of 8, the others more than 1.

    ```mlir
    %dx, %db = train.matmul_gelu_backward %dy, %w, %x {transpose_a = false, transpose_b = false}
        : (tensor<16x512xf32>, tensor<512x64xf32>, tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$a, Train_Real:$b, Train_Real:$x, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
      DefaultValuedAttr<BoolAttr, "false">:$transpose_b);
  let results = (outs Train_Real:$dx, Optional<Train_Real>:$dbias);
}
def Train_AttentionBackwardOp : Train_GradientOp<"attention_backward", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_AttentionMasks.decl # Train_KernelFacts<"FullyConnected", results = ["_dq", "_dk", "_dv"]>.decl;
  let summary = "gradients of train.attention with respect to q, k and v; computes the scores again, block by block";
  let description = [{
    Operands that are views on one tensor have one gradient, like that tensor.

    - C1: train.attention maps q, k, v and masks to y and logsumexp; dy is like y; the gradients are like q, k and v, one for each tensor.

    ```mlir
    %dq, %dk, %dv = train.attention_backward %dy, %q, %k, %v, %y, %sums {scale = 0.5 : f32} : (tensor<8x16x4xf32>, tensor<8x16x4xf32>,
        tensor<8x16x4xf32>, tensor<8x16x4xf32>, tensor<8x16x4xf32>, tensor<8x16xf32>) -> (tensor<8x16x4xf32>, tensor<8x16x4xf32>, tensor<8x16x4xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$q, Train_Real:$k, Train_Real:$v, Train_Real:$y, Train_Float:$logsumexp,
      Variadic<Train_Float>:$masks, F32Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal, DefaultValuedAttr<F32Attr, "0.0f">:$ratio,
      DefaultValuedAttr<I64Attr, "0">:$key, OptionalAttr<Train_ViewAttr>:$q_view, OptionalAttr<Train_ViewAttr>:$k_view,
      OptionalAttr<Train_ViewAttr>:$v_view, OptionalAttr<DenseI64ArrayAttr>:$y_order);
  let results = (outs Variadic<Train_Real>:$gradients);
}
def Train_MaxPoolBackwardOp : Train_GradientOp<"max_pool_backward", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Pool">.decl # Train_MemoryWork<"PoolBackward">.decl;
  let summary = "sends every gradient to the window position that won";
  let description = [{
    - C1: the pool with these attributes, rounding down or up, maps dx to dy and indices.

    ```mlir
    %dx = train.max_pool_backward %dy, %indices {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>,
        dilations = array<i64: 1, 1>} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xi8>) -> tensor<8x4x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Tensor:$indices, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations);
  let results = (outs Train_Real:$dx);
}
def Train_AveragePoolBackwardOp : Train_GradientOp<"average_pool_backward", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Pool">.decl # Train_MemoryWork<"PoolBackward">.decl;
  let summary = "spreads every gradient evenly over its window";
  let description = [{
    - C1: the pool with these attributes, rounding down or up, maps dx to dy.

    ```mlir
    %dx = train.average_pool_backward %dy {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
        : (tensor<8x4x2x2xf32>) -> tensor<8x4x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
      DefaultValuedAttr<BoolAttr, "false">:$count_include_pad, OptionalAttr<DenseI64ArrayAttr>:$dilations);
  let results = (outs Train_Real:$dx);
}
def Train_SoftmaxBackwardOp : Train_GradientOp<"softmax_backward", [Train_OwnKernel, Train_PrecisionAware]> {
  let summary = "gradient of train.softmax; reads its result";
  let description = [{
    - C1: dy, y and dx have one shape; 0 <= axis < rank.

    ```mlir
    %dx = train.softmax_backward %dy, %y {axis = 1 : i64, logarithm = false} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$y, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$logarithm);
  let results = (outs Train_Real:$dx);
}
def Train_EmbeddingBackwardOp : Train_GradientOp<"embedding_backward", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>, DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let summary = "gradient of train.embedding with respect to its table: for every row the sum over the places where it stands";
  let description = [{
    The summands of a row come in the order of the ids, so that the sums are the same bits whatever the threads. Rows that no id names are zero.

    - C1: the embedding of a table of dtable's shape by ids has dy's shape.

    ```mlir
    %dtable = train.embedding_backward %dy, %ids : (tensor<8x16x64xf32>, tensor<8x16xi64>) -> tensor<1000x64xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Ids:$ids);
  let results = (outs Train_Float:$dtable);
}
def Train_PickBackwardOp : Train_GradientOp<"pick_backward", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Costed, ["flops"]>]> {
  let summary = "gradient of train.pick with respect to x: for every element the sum over the places where it stands";
  let description = [{
    Summands come in the order of the ids; what no id names has the gradient 0.

    - C1: what train.pick takes by ids from a tensor of dx's shape has dy's shape.

    ```mlir
    %dx = train.pick_backward %dy, %ids : (tensor<8x2xf32>, tensor<8x2xi64>) -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Ids:$ids);
  let results = (outs Train_Float:$dx);
}
def Train_ResizeBackwardOp : Train_GradientOp<"resize_backward", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let summary = "gradient of train.resize";
  let description = [{
    - C1: dx has rank 4 and dy's batch and channels; scales are positive.

    ```mlir
    %dx = train.resize_backward %dy {scale_h = 2.0 : f32, scale_w = 2.0 : f32, mode = 0 : i32, coordinates = 3 : i32, nearest = 2 : i32} : (tensor<4x64x64x64xf32>) -> tensor<4x64x32x32xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, F32Attr:$scale_h, F32Attr:$scale_w, Train_ResizeMode:$mode, Train_Coordinates:$coordinates,
      Train_NearestMode:$nearest);
  let results = (outs Train_Real:$dx);
}
def Train_PadSlabOp : Train_GradientOp<"pad_slab", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_Follow.decl # Train_KernelFacts<"Other", launch = "insert">.decl;
  let summary = "gradient of train.slice: zeros, with dy in the slab that starts at `start`";
  let description = [{
    - C1: the slice of dx from `start` with dy's extent along `axis` has dy's shape.

    ```mlir
    %dx = train.pad_slab %dy {axis = 1 : i64, start = 64 : i64} : (tensor<8x32x28x28xf32>) -> tensor<8x96x28x28xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, I64Attr:$axis, I64Attr:$start);
  let results = (outs Train_Real:$dx);
}
def Train_LossBackwardOp : Train_GradientOp<"loss_backward", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Loss">.decl;
  let summary = "gradient of the attached loss with respect to the model's output";
  let description = [{
    `loss` is the forward op. Reads the logits and the target side by side, class by class, so both are row-major; the upstream gradient
    is 1, which a train.mul changes where the loss is a part of what the step returns. Logits of targets that are `ignore_index` have the gradient 0. In
    16 bits dx is where products read it as it is. It is 0 behind the `classes`. `first` is that of train.softmax_cross_entropy.

    - C1: `loss` takes x, target and, bce_with_logits alone, pos_weight; dx has x's shape.
    - C2: softmax_cross_entropy alone has `classes`, 1 to K, and `first`.

    ```mlir
    %dx = train.loss_backward softmax_cross_entropy %logits, %target : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<16x10xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Tensor:$target, Optional<Train_Float>:$pos_weight, Train_LossForm:$loss,
      OptionalAttr<I64Attr>:$ignore_index, OptionalAttr<I64Attr>:$classes, OptionalAttr<I64Attr>:$first);
  let results = (outs Train_Real:$dx);
  let assemblyFormat = "$loss operands attr-dict `:` functional-type(operands, results)";
}
def Train_LossAndGradientOp : Train_GradientOp<"loss_and_gradient", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "isResultWide"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Loss", results = ["", "_loss"], launch = "loss">.decl # Train_RoleIs<"Loss">.decl
      # "::sluice::sched::IdsAttr ids();";
  let summary = "train.softmax_cross_entropy and the gradient of its logits, which are read once";
  let description = [{
    Created by join-losses, for cuda. dx may take the bytes of x.

    - C1: train.softmax_cross_entropy with these attributes takes x and target; dx has x's shape.

    ```mlir
    %dx, %loss = train.loss_and_gradient %logits, %target : (tensor<16x10xf32>, tensor<16xi64>) -> (tensor<16x10xf32>, tensor<f32>)
    ```
  }];
  let arguments = (ins Train_Real:$x, RankedTensorOf<[I64]>:$target, OptionalAttr<I64Attr>:$ignore_index, OptionalAttr<I64Attr>:$classes,
      OptionalAttr<I64Attr>:$first);
  let results = (outs Train_Real:$dx, Train_Scalar:$loss);
}
def Train_CtcLossBackwardOp : Train_GradientOp<"ctc_loss_backward", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Loss">.decl;
  let summary = "gradient of train.ctc_loss with respect to its scores";
  let description = [{
    Goes through all ways to spell the labels again, in its scratch. The upstream gradient is 1, as for train.loss_backward.

    - C1: operands and attributes are those of a train.ctc_loss; dx has x's shape.

    ```mlir
    %dx = train.ctc_loss_backward %scores, %target {blank = 0 : i64} : (tensor<16x50x28xf32>, tensor<16x12xi64>) -> tensor<16x50x28xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, RankedTensorOf<[I64]>:$target, Variadic<RankedTensorOf<[I64]>>:$lengths, I64Attr:$blank,
      OptionalAttr<I64Attr>:$ignore_index, UnitAttr:$counts_steps, UnitAttr:$zero_infinity);
  let results = (outs Train_Real:$dx);
}

#endif
