// SPDX-License-Identifier: Apache-2.0
// Normalizations and their gradients. The fuse pass splits train.batch_norm into statistics and an elementwise part.
#ifndef SLUICE_IR_NORM_OPS
#define SLUICE_IR_NORM_OPS

include "ir/GradientOps.td"

/// How many ranks' batches a BatchNorm normalizes together.
defvar Train_NormRanks = DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">;

def Train_BatchNormOp : Train_ForwardOp<"batch_norm", [DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    Train_LayoutAware]> {
  let summary = "normalization by the batch's own mean and variance per channel";
  let description = [{
    y = (x - mean) * rstd * scale + bias with rstd = 1/sqrt(biased variance + epsilon). mean and rstd feed the backward op and the
    update of the running statistics. The fuse pass splits it.

    `ranks` (default 1), in a program for several ranks: mean and variance are those of the batches that so many of them run at once.

    - C1: scale and bias are [C] with C = x.dim(1).

    ```mlir
    %y, %mean, %rstd = train.batch_norm %x, %scale, %bias {epsilon = 1.0e-5 : f32}
        : (tensor<16x64x32x32xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<16x64x32x32xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Vector:$scale, Train_Vector:$bias, F32Attr:$epsilon, Train_NormRanks:$ranks);
  let results = (outs Train_Float:$y, Train_Vector:$mean, Train_Vector:$rstd);
}

def Train_BatchNormBackwardOp : Train_GradientOp<"batch_norm_backward", [Train_LayoutAware]> {
  let summary = "gradients of train.batch_norm with respect to x, scale and bias; split by fuse";
  let description = [{
    `ranks` is that of the forward op. dx then depends on the channel sums of so many ranks, whose losses have weighed dy already; dscale and dbias are
    of this rank's batch alone.

    - C1: dy, x and dx have one shape, all others are [C] with C = x.dim(1).

    ```mlir
    %dx, %ds, %db = train.batch_norm_backward %dy, %x, %scale, %mean, %rstd : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>,
        tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, Train_Vector:$scale, Train_Vector:$mean, Train_Vector:$rstd, Train_NormRanks:$ranks);
  let results = (outs Train_Float:$dx, Train_Vector:$dscale, Train_Vector:$dbias);
}

def Train_BatchNormStatisticsOp : Train_Op<"batch_norm_statistics", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>,
    Pure, Train_Costed, Train_Recomputable,
    InferTypeOpAdaptorWithIsCompatible, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm", object = "_statistics", results = ["_mean", "_rstd"]>.decl # Train_MemoryWork<"Norm">.decl;
  let summary = "mean and 1/sqrt(variance + epsilon) of every channel";
  let description = [{
    Created by fuse from train.batch_norm.

    ```mlir
    %mean, %rstd = train.batch_norm_statistics %x {epsilon = 1.0e-5 : f32} : (tensor<16x64x32x32xf32>) -> (tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$x, F32Attr:$epsilon);
  let results = (outs Train_Vector:$mean, Train_Vector:$rstd);
}

def Train_ConvStatisticsOp : Train_Op<"conv_statistics", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>, Pure,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>, Train_Recomputable, InferTypeOpAdaptorWithIsCompatible,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isLayoutFixed"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv", object = "_statistics", results = ["", "_mean", "_rstd"]>.decl;
  let summary = "a convolution, and mean and 1/sqrt(variance + epsilon) of every channel of its result, without reading that again";
  let description = [{
    Created by fuse-epilogues from train.conv and train.batch_norm, for floats of 16 bits on cuda alone.

    - C1: train.conv maps x and w to y.

    ```mlir
    %y, %mean, %rstd = train.conv_statistics %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64,
        epsilon = 1.0e-5 : f32} : (tensor<16x64x8x8xf32>, tensor<256x64x1x1xf32>) -> (tensor<16x256x8x8xf32>, tensor<256xf32>, tensor<256xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Real:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
      I64Attr:$group, F32Attr:$epsilon);
  let results = (outs Train_Real:$y, Train_Vector:$mean, Train_Vector:$rstd);
}

def Train_ConvBackwardNormOp : Train_GradientOp<"conv_backward_norm", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "isResultWide"]>,
    DeclareOpInterfaceMethods<Train_LayoutAware, ["isLayoutFixed"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Conv", object = "_dx", results = ["_dx", "_dscale", "_dbias"]>.decl;
  let summary = "gradient of a convolution with respect to its input, where that is what ReLU gave, with the channel sums of the BatchNorm before";
  let description = [{
    dz = train.relu_backward (train.conv_backward_data dy, w, plus `addend` where there is one), z; dscale and dbias are train.normalize_reduce dz, x,
    mean, rstd, of x that BatchNorm read. Created by fuse-epilogues, for floats of 16 bits on cuda alone.

    - C1: the convolution with these attributes maps dz and w to dy; z, x and addend have dz's shape.
    - C2: mean, rstd, dscale and dbias are [C] with C = dz.dim(1).

    ```mlir
    %dz, %ds, %db = train.conv_backward_norm %dy, %w, %z, %x, %mean, %rstd, %skip {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
        dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<8x64x14x14xf32>, tensor<64x32x1x1xf32>, tensor<8x32x14x14xf32>, tensor<8x32x14x14xf32>,
        tensor<32xf32>, tensor<32xf32>, tensor<8x32x14x14xf32>) -> (tensor<8x32x14x14xf32>, tensor<32xf32>, tensor<32xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$w, Train_Real:$z, Train_Real:$x, Train_Vector:$mean, Train_Vector:$rstd,
      Optional<Train_Real>:$addend, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$group);
  let results = (outs Train_Real:$dz, Train_Vector:$dscale, Train_Vector:$dbias);
}

def Train_LrnOp : Train_ForwardOp<"lrn", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm">.decl;
  let summary = "local response normalization across channels";
  let description = [{
    y = x / (bias + alpha/size * sum of x^2 over `size` channels)^beta. The backward op computes the denominator again.

    ```mlir
    %y = train.lrn %x {size = 5 : i64, alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32} : (tensor<8x96x27x27xf32>) -> tensor<8x96x27x27xf32>
    ```
  }];
  let arguments = (ins Train_Real:$x, I64Attr:$size, F32Attr:$alpha, F32Attr:$beta, F32Attr:$bias);
  let results = (outs Train_Real:$y);
}

def Train_LrnBackwardOp : Train_GradientOp<"lrn_backward", [Train_OwnKernel, Train_PrecisionAware, Train_LayoutAware]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm">.decl;
  let summary = "gradient of train.lrn; computes the denominator again from x";
  let description = [{
    - C1: dy, x and dx have one shape of rank 4.

    ```mlir
    %dx = train.lrn_backward %dy, %x {size = 5 : i64, alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32} : (tensor<8x96x27x27xf32>, tensor<8x96x27x27xf32>) -> tensor<8x96x27x27xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$x, I64Attr:$size, F32Attr:$alpha, F32Attr:$beta, F32Attr:$bias);
  let results = (outs Train_Real:$dx);
}

def Train_LayerNormOp : Train_ForwardOp<"layer_norm", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["isOperandWide", "isResultWide"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm", results = ["", "_mean", "_rstd"]>.decl;
  let summary = "normalization of every row by its own mean and variance";
  let description = [{
    y = (x - mean) * rstd * scale + bias with rstd = 1/sqrt(biased variance + epsilon). Rows are all dimensions before the normalized ones.
    Gradients of scale and bias are those of train.normalize_reduce.

    - C1: x has rank 2; scale and bias are [C] with C = x.dim(1).

    ```mlir
    %y, %mean, %rstd = train.layer_norm %x, %scale, %bias {epsilon = 1.0e-6 : f32}
        : (tensor<512x96xf32>, tensor<96xf32>, tensor<96xf32>) -> (tensor<512x96xf32>, tensor<512x1xf32>, tensor<512x1xf32>)
    ```
  }];
  let arguments = (ins Train_Real:$x, Train_Vector:$scale, Train_Vector:$bias, F32Attr:$epsilon);
  let results = (outs Train_Real:$y, Train_Float:$mean, Train_Float:$rstd);
}

def Train_LayerNormBackwardOp : Train_GradientOp<"layer_norm_backward", [Train_OwnKernel,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["isOperandWide"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm">.decl # Train_NamesDeclaration<"operandNames", arguments>.decl
      # "/// The rule as scalars of a region, for fuse with rows.\n::llvm::SmallVector<::mlir::Value> buildScalar(::mlir::OpBuilder &builder, ::mlir::ValueRange v);";
  let summary = "gradient of train.layer_norm with respect to x";
  let description = [{
    With xhat = (x - mean) * rstd and g = dy * scale: dx = rstd * (g - mean of g - xhat * mean of g * xhat), means over the row.

    - C1: dy, x and dx have one shape; train.layer_norm maps x and scale to dy, mean and rstd.

    ```mlir
    %dx = train.layer_norm_backward %dy, %x, %scale, %mean, %rstd : (tensor<512x96xf32>, tensor<512x96xf32>, tensor<96xf32>,
        tensor<512x1xf32>, tensor<512x1xf32>) -> tensor<512x96xf32>
    ```
  }];
  let arguments = (ins Train_Real:$dy, Train_Real:$x, Train_Vector:$scale, Train_Float:$mean, Train_Float:$rstd);
  let results = (outs Train_Real:$dx);
}

#endif
