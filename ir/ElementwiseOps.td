// SPDX-License-Identifier: Apache-2.0
// Elementwise ops, forward and backward: one scalar rule each (Elementwise.cpp), one gradient rule each for the forward ones
// (ElementwiseGradients.cpp). The frontend and build-backward create them, the fuse pass gathers them into train.fused, whose region holds arith and
// math ops on scalars. Nothing after fuse sees them.
#ifndef SLUICE_IR_ELEMENTWISE_OPS
#define SLUICE_IR_ELEMENTWISE_OPS

include "ir/ForwardOps.td"

/// A method that lists the names in a dag of operands or results; attributes, which are no types, it leaves out.
class Train_NamesDeclaration<string method, dag values> {
  list<int> typed = !filter(i, !range(!size(values)), !initialized(!getdagarg<TypeConstraint>(values, i)));
  string decl = "static ::llvm::ArrayRef<::llvm::StringLiteral> " # method # "() {\n  static constexpr ::llvm::StringLiteral names[] = {\""
      # !interleave(!foreach(i, typed, !getdagname(values, i)), "\", \"") # "\"};\n  return names;\n}\n";
}
class Train_ElementwiseOp<string mnemonic, list<Trait> traits = []> : Train_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<Train_Elementwise>, Train_Costed, Train_LayoutAware] # traits> {
  let extraClassDeclaration = Train_Follow.decl # Train_NamesDeclaration<"operandNames", arguments>.decl
      # Train_NamesDeclaration<"resultNames", results>.decl;
}

/// Unary or broadcasting binary forward op; the result has the broadcast shape.
class Train_PointwiseOp<string mnemonic, list<Trait> traits = []> : Train_ElementwiseOp<mnemonic, [
    DeclareOpInterfaceMethods<Train_Differentiable>, Train_Recomputable, InferTypeOpAdaptorWithIsCompatible] # traits> {
  let results = (outs Train_Float:$y);
}
/// A pointwise op whose result has the type of its first operand, x.
class Train_LikeXOp<string mnemonic, list<Trait> traits = []> : Train_PointwiseOp<mnemonic, traits> {
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange a, ::mlir::TypeRange b) { return compatibleTypes(a, b); }
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>, Adaptor op,
                                                      ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      types.push_back(op.getX().getType());
      return ::mlir::success();
    }
  }];
}
class Train_UnaryOp<string mnemonic, list<Trait> traits = []> : Train_LikeXOp<mnemonic, traits> {
  let arguments = (ins Train_Float:$x);
}
class Train_BinaryOp<string mnemonic> : Train_PointwiseOp<mnemonic> {
  let arguments = (ins Train_Float:$a, Train_Float:$b);
}

/// How many elements of a batch stand before those of an op that is computed for some samples.
defvar Train_FirstElement = DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">;

def Train_ScaleOp : Train_LikeXOp<"scale"> {
  let summary = "factor * x";
  let description = [{
    ```mlir
    %y = train.scale %x {factor = 5.0e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, F32Attr:$factor);
}
def Train_DropoutOp : Train_PointwiseOp<"dropout"> {
  let summary = "x / (1 - ratio) with probability 1 - ratio, else 0";
  let description = [{
    The draw is a function of (seed, key, step, element), so the backward op and a recomputed clone draw the same mask and nothing is kept. `group`
    neighbours in the physical order share one draw: all elements of a sample, for stochastic depth by row. `first` elements of the batch stand before these.

    - C1: group >= 1 divides the number of elements, and `first`.

    ```mlir
    %y = train.dropout %x {ratio = 5.0e-1 : f32, key = 7 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, F32Attr:$ratio, I64Attr:$key, DefaultValuedAttr<I64Attr, "1">:$group, Train_FirstElement:$first);
}
def Train_NoiseOp : Train_ElementwiseOp<"noise", [DeclareOpInterfaceMethods<Train_Differentiable>, Train_Recomputable]> {
  let summary = "x, broadcast, plus a random number for each element of the result";
  let description = [{
    The draw is a function of (seed, key, step, element), as that of train.dropout: a recomputed clone draws the same numbers. Normal ones are made of two
    uniform ones (Box and Muller 1958), and end at 5.8. `key` is below 2^32. `first` is as that of train.dropout.

    - C1: x broadcasts to the result's shape.
    - C2: key lies in [0, 2^32).

    ```mlir
    %y = train.noise %x {distribution = 1 : i32, key = 7 : i64} : (tensor<f32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Distribution:$distribution, I64Attr:$key, Train_FirstElement:$first);
  let results = (outs Train_Float:$y);
  let hasVerifier = 1;
}
def Train_AddOp : Train_BinaryOp<"add"> {
  let summary = "a + b with broadcasting; sums of gradients too";
  let description = [{
    ```mlir
    %y = train.add %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_SubOp : Train_BinaryOp<"sub"> {
  let summary = "a - b with broadcasting";
  let description = [{
    ```mlir
    %y = train.sub %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_MulOp : Train_BinaryOp<"mul"> {
  let summary = "a * b with broadcasting";
  let description = [{
    ```mlir
    %y = train.mul %a, %b : (tensor<8x4x2x2xf32>, tensor<8x4x1x1xf32>) -> tensor<8x4x2x2xf32>
    ```
  }];
}
def Train_DivOp : Train_BinaryOp<"div"> {
  let summary = "a / b with broadcasting";
  let description = [{
    ```mlir
    %y = train.div %a, %b : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_RemainderOp : Train_BinaryOp<"remainder"> {
  let summary = "what is left of a after the whole multiple of b that lies toward 0, with broadcasting: C's fmod";
  let description = [{
    Exact, with the sign of a. The gradient of b is that of a - b * n with the whole number n = a / b toward 0, which has none itself.
    ```mlir
    %y = train.remainder %a, %b : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_RoundOp : Train_LikeXOp<"round"> {
  let summary = "x as a whole number: below, above, the nearest (of two the even one) or toward 0";
  let description = [{
    No gradient, or with `straight_through` that of y = x, as quantization is trained (Bengio et al. 2013, straight-through estimator).
    ```mlir
    %y = train.round %x {rounding = 0 : i32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Rounding:$rounding, UnitAttr:$straight_through);
}
def Train_DetachOp : Train_UnaryOp<"detach"> {
  let summary = "x, which no gradient passes, as torch.Tensor.detach has it";
  let description = [{
    ```mlir
    %y = train.detach %x : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
}
def Train_CompareOp : Train_PointwiseOp<"compare"> {
  let summary = "1 where `predicate` holds of a and b, else 0, with broadcasting; no gradient";
  let description = [{
    Truth values are numbers, 1 and 0, wherever they are data. Comparisons with NaN do not hold.
    ```mlir
    %y = train.compare %a, %b {predicate = 1 : i32} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$a, Train_Float:$b, Train_Comparison:$predicate);
}
def Train_SelectOp : Train_PointwiseOp<"select"> {
  let summary = "a where condition > 0, else b, with broadcasting: ONNX Where";
  let description = [{
    The predicate is that of masks: a condition that the backward half reads may be kept in one bit.
    ```mlir
    %y = train.select %condition, %a, %b : (tensor<4x4xf32>, tensor<8x4x4xf32>, tensor<f32>) -> tensor<8x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$condition, Train_Float:$a, Train_Float:$b);
}
def Train_ChannelAffineOp : Train_LikeXOp<"channel_affine", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand"]>,
    DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias with given statistics";
  let description = [{
    BatchNormalization with running statistics: evaluation, and training under --batch-norm=frozen (gradients to x, scale and bias).
    ```mlir
    %y = train.channel_affine %x, %mean, %variance, %scale, %bias {epsilon = 1.0e-5 : f32}
        : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Vector:$mean, Train_Vector:$variance, Train_Vector:$scale, Train_Vector:$bias, F32Attr:$epsilon);
}

// What fuse makes of train.batch_norm and its backward op.

def Train_NormalizeOp : Train_ElementwiseOp<"normalize", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand"]>]> {
  let summary = "(x - mean) * rstd * scale + bias per channel";
  let description = [{
    ```mlir
    %y = train.normalize %x, %mean, %rstd, %scale, %bias : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Vector:$mean, Train_Vector:$rstd, Train_Vector:$scale, Train_Vector:$bias);
  let results = (outs Train_Float:$y);
}
def Train_NormalizeReduceOp : Train_ElementwiseOp<"normalize_reduce", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand", "isSumResult"]>]> {
  let summary = "the two channel sums of a normalization's gradient: sum dy * xhat and sum dy";
  let description = [{
    With xhat = (x - mean) * rstd they are the gradients of scale and bias. mean and rstd are those of channels, [C], or broadcast to x.
    ```mlir
    %dscale, %dbias = train.normalize_reduce %dy, %x, %mean, %rstd : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, Train_Float:$mean, Train_Float:$rstd);
  let results = (outs Train_Vector:$dscale, Train_Vector:$dbias);
}
def Train_NormalizeBackwardOp : Train_ElementwiseOp<"normalize_backward", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand"]>]> {
  let summary = "gradient of BatchNorm with respect to x, given its channel sums";
  let description = [{
    dx = scale * rstd * (dy - dbias/count - xhat * dscale/count).
    ```mlir
    %dx = train.normalize_backward %dy, %x, %mean, %rstd, %scale, %dscale, %dbias {count = 32 : i64} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>,
        tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, Train_Vector:$mean, Train_Vector:$rstd, Train_Vector:$scale, Train_Vector:$dscale,
      Train_Vector:$dbias, I64Attr:$count);
  let results = (outs Train_Float:$dx);
}

// Backward rules.

class Train_PointwiseBackwardOp<string mnemonic> : Train_ElementwiseOp<mnemonic> {
  let results = (outs Train_Float:$dx);
}
def Train_SelectBackwardOp : Train_PointwiseBackwardOp<"select_backward"> {
  let summary = "gradient of train.select with respect to a, or with `other` to b: dy where that was taken, else 0";
  let description = [{
    ```mlir
    %da = train.select_backward %dy, %condition {other = false} : (tensor<8x4x4xf32>, tensor<4x4xf32>) -> tensor<8x4x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$condition, DefaultValuedAttr<BoolAttr, "false">:$other);
}
def Train_ChannelAffineReduceOp : Train_ElementwiseOp<"channel_affine_reduce", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand", "isSumResult"]>]> {
  let summary = "gradients of scale and bias of train.channel_affine";
  let description = [{
    ```mlir
    %dscale, %dbias = train.channel_affine_reduce %dy, %x, %mean, %variance {epsilon = 1.0e-5 : f32} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, Train_Vector:$mean, Train_Vector:$variance, F32Attr:$epsilon);
  let results = (outs Train_Vector:$dscale, Train_Vector:$dbias);
}
def Train_ChannelAffineBackwardOp : Train_ElementwiseOp<"channel_affine_backward", [DeclareOpInterfaceMethods<Train_Elementwise, ["isChannelOperand"]>]> {
  let summary = "dy * scale / sqrt(variance + epsilon)";
  let description = [{
    ```mlir
    %dx = train.channel_affine_backward %dy, %variance, %scale {epsilon = 1.0e-5 : f32} : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Vector:$variance, Train_Vector:$scale, F32Attr:$epsilon);
  let results = (outs Train_Float:$dx);
}

def Train_UniformOp : Train_Op<"uniform", []> {
  let summary = "inside a region: the element's draw from [0, 1) of generator `key` in this step";
  let description = [{
    A function of (seed, key, step, i / `group`), i being `first` and the element's index in the physical order of the region's shape.
    ```mlir
    %u = train.uniform {key = 7 : i64} : () -> f32
    ```
  }];
  let arguments = (ins I64Attr:$key, DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$group, Train_FirstElement:$first);
  let results = (outs F32:$u);
}

def Train_RowMeanOp : Train_Op<"row_mean", [Pure]> {
  let summary = "inside a region: the mean of a value over the elements of its row, which differ in the last dimension alone";
  let description = [{
    ```mlir
    %m = train.row_mean %v : (f32) -> f32
    ```
  }];
  let arguments = (ins F32:$value);
  let results = (outs F32:$mean);
}

def Train_YieldOp : Train_Op<"yield", [Terminator, Pure]> {
  let summary = "values of a fused region: its outputs, then its sums";
  let description = [{
    ```mlir
    train.yield %a, %b : f32, f32
    ```
  }];
  let arguments = (ins Variadic<F32>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Train_FusedOp : Train_Op<"fused", [DeclareOpInterfaceMethods<Train_HasKernel, ["opKind", "resultSuffix"]>, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isOperandWide", "isResultWide"]>,
    Pure, SingleBlock, IsolatedFromAbove,
    DeclareOpInterfaceMethods<Train_Costed, ["flops"]>, Train_LayoutAware, Train_Recomputable,
    DeclareOpInterfaceMethods<Train_Invertible>]> {
  let summary = "elementwise ops as one kernel: a scalar region run for every element of `shape`";
  let description = [{
    Created by fuse; codegen prints the region as one function for either target. The region's arguments are one f32 for every operand;
    it yields one f32 for every result. Results are full tensors first, then `sums` [C] vectors: the region's value summed over every
    dimension but 1. Operands listed in `channels` are [C] vectors indexed by dimension 1; the others broadcast by numpy's rules. A mask
    (i1) that train.encode made of an operand stands in its place when the region only compares it with 0: the region sees 1 or 0.
    Invertible where the region is exactly a normalization and a leaky ReLU with a slope of 1e-3 at least, and for an operand that it only
    adds, subtracts or multiplies by a constant on the way to its one result.

    - C1: as many region arguments as operands, as many yielded values as results.
    - C2: the first results() - sums results have one type; every operand not in `channels` broadcasts to it (or, with sums only, to
      operand 0's shape) and has its layout; operands in `channels` and sums are [C]. Operands may be f32, bf16 or f16, the region sees f32.
    - C3: a mask has that very shape.
    - C4: no more operands and results together than kernels walk over (32).
    - C5: train.row_mean is of regions of rank 2, and takes nothing that a draw or another mean is behind.

    ```mlir
    %y = train.fused (%x, %b : tensor<8x4xf32>, tensor<8x4xf32>) channels [] sums 0 -> (tensor<8x4xf32>) {
    ^bb0(%s: f32, %t: f32):
      %0 = arith.addf %s, %t : f32
      train.yield %0 : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Train_RealOrMask>:$inputs, DenseI64ArrayAttr:$channels, I64Attr:$sums);
  let results = (outs Variadic<Train_Real>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `:` type($inputs) `)` `channels` $channels `sums` $sums `->` `(` type($outputs) `)` attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Channel sums want the channels innermost, whatever the operands have. Draws go by the physical order, which has to be one for the
    /// forward and the backward region of a dropout: images have the channels innermost, tensors of other ranks are row-major.
    ::sluice::train::LayoutPreference layoutPreference();
    /// Whether the region draws random numbers.
    bool draws();
    /// Whether an element depends on all of its row.
    bool hasRowMeans();
    /// Whether sums and draws of both regions want one order, were they one.
    bool mayJoin(::sluice::train::FusedOp other);
    /// Type whose shape the region runs over: the first full result's, or operand 0's when all results are sums.
    ::mlir::RankedTensorType domain();
    bool isChannel(unsigned operand) { return ::llvm::is_contained(getChannels(), static_cast<int64_t>(operand)); }
    /// Share of zeros that a result is expected to have: half after a ReLU, the ratio of a dropout.
    double expectedZeros(unsigned result);
    unsigned fullResults() { return getNumResults() - getSums(); }
  }];
}

#endif
