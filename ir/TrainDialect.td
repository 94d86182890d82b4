// SPDX-License-Identifier: Apache-2.0
// The train dialect: one training step in value semantics. Op groups are in ForwardOps.td, LossOps.td, ProductOps.td, ElementwiseOps.td,
// ActivationOps.td, GradientOps.td, NormOps.td, RecurrenceOps.td, UpdateOps.td and MemoryOps.td; the facts that analyses need are interface methods, see TrainInterfaces.td.
#ifndef SLUICE_IR_TRAIN_DIALECT
#define SLUICE_IR_TRAIN_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def TrainDialect : Dialect {
  let name = "train";
  let cppNamespace = "::sluice::train";
  let summary = "one training step of a network, forward, backward and update";
  let description = [{
    ```
      ONNX  --frontend-->  forward ops  --recompose, build-backward-->  + gradient and update ops
            --split, fuse-epilogues, fuse, assign-layouts, quantize-frozen, assign-precision, pad-products-->  train.fused, layouts, halves
            --linearize, estimate-cost-->  stages, pieces, costs
            --plan-memory, apply-plan-->   + memory ops   --schedule-streams-->  sched dialect
    ```
    A module holds `train.variable` symbols and the functions `@step` (one training step; arguments are the model's inputs and the
    target; returns the loss) and `@evaluate` (forward with running statistics; returns loss, number of correct samples and, where
    the file names one, the model's output).

    - After the frontend: forward ops, elementwise ops and loss ops; `func.return` of the loss.
    - After recompose: what exports wrote out as several ops (gelu, attention, layer norm) is one.
    - After build-backward: gradient and update ops as well. Forward ops carry `train.forward`, their ordinal, the others
      `train.backward`, the ordinal of the forward op that they belong to.
    - After split, with --parts: the largest cross-entropy, what makes its scores and what comes of their gradient stand there once for each part of the rows, all of it backward.
    - After fuse-epilogues, on cuda with halves and --epilogues: convolutions that also compute what BatchNorm asks of their results, and products that compute Gelu of theirs.
    - After fuse: elementwise ops exist only inside `train.fused`; `train.batch_norm` and its backward op are gone.
    - After assign-layouts: activations that are images (rank 4), lines (3) or volumes (5) carry `#train.layout<nhwc>` as tensor encoding; `train.reorder` changes layouts.
    - After quantize-frozen: variables that --frozen names hold forms of fewer bits, which `train.quantized_matmul` reads (on the host); `train.dequantize` or `train.cast` stands in front of each other use.
    - After assign-precision: with `train.precision` "bf16" or "fp16" what convolutions and products read is bf16 or f16; `train.cast` changes element types.
    - After linearize: every op carries `train.stage`, and `train.in_place` where results take operands' bytes.
    - After estimate-cost: every op with a kernel carries `train.cost`.
    - After plan-memory: @step carries `train.plan`.
    - After apply-plan: memory ops say the whole plan.

    What passes attach to ops is verified as well:
    - A1: `train.forward`, `train.backward` and `train.stage` are i64 >= 0; an op is forward or backward, not both.
    - A2: `train.in_place` has an entry per result: -1, or an operand of the result's type that no other result takes.
    - A3: `train.cost` is a #train.cost: seconds and workspace bytes, both >= 0; its alternatives have an algorithm each.
    - A4: `train.recompute`, which marks clones, is on Recomputable ops; `train.inverse` marks what an inversion runs.
    - A5: `train.algorithm` is a #train.algorithm: which of several ways the kernel computes in.
    - A6: `train.plan`, on @step and on the program that it becomes, is a #train.plan.
    - A7: `train.offsets`, on what apply-plan leaves, has for each result and then for the workspace where in the device arena the plan puts them; -1: nowhere.
    - A8: `train.quantized`, on variables, is a #train.quantized of the variable's shape before quantize-frozen, and of its bytes afterwards.

    `train.rule`, on fused ops, names the elementwise ops that they gather: "normalize+relu".

    Of the module, from the frontend unless another pass is named:
    - `train.optimizer`: the word of --optimizer; `train.precision`: "fp32", "tf32", "bf16" or "fp16".
    - `train.clip_norm`, `train.accumulate`, `train.average`: flags, what build-backward adds to updates.
    - `train.ranks`, of a program for several ranks: how they sum, "ordered" or "fast"; `train.sums`: the digits of train.sum_batches;
      `train.shares`: each keeps a share of the optimizer's states, and there are so many ranks at least; `train.gradient_shares`: beside it, of
      the gradients as well; `train.parameter_shares`: beside both, of the parameters. `train.norm_ranks`: each BatchNorm of a step normalizes the batches of so many ranks together.
    - `train.outputs`: #train.output of each value that programs predict, those with attached losses first; `train.adapters`: #train.adapter of each adapter.
    - `train.loss_inputs`: names of arguments that predictions do not depend on; `train.shared`: of inputs that all samples have in common.
    - `train.id_limits`: by the name of an input that indexes, [lower, upper) and what may be ignored.
    - `train.class_weights`, `train.other_mean`: flags, the loss has weights, or is no known mean over the counted targets.
    - `train.engines`: what a profile recorded, by estimate-cost; `train.lossy`: #train.lossy, by plan-memory.

    Of arguments: `train.name`, the ONNX input, or "target". Of variables:
    - `train.tensor_name`, `train.source`, `train.tied_names`: see ir/TensorName.h.
    - `train.share_of`: of a vector that holds a rank's share of what belongs to a parameter, that one's symbol, by build-backward.
    - `train.whole`: of a vector that is a rank's share of a parameter, that one's type, by home-variables.
    - `train.copy_of`: of one with init(copy), the symbol of the variable whose first value it takes, by build-backward.
    - `train.unreached`: a parameter that no gradient of the loss reaches, which keeps its value, by build-backward.

    Tensor types are builtin; shapes are logical (NCHW); no encoding means row-major.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect", "::sluice::sched::SchedDialect"];
  let discardableAttrs = (ins "::mlir::IntegerAttr":$forward, "::mlir::IntegerAttr":$backward, "::mlir::IntegerAttr":$stage,
    "::mlir::UnitAttr":$recompute, "::mlir::UnitAttr":$inverse, "::mlir::DenseI64ArrayAttr":$in_place, "::sluice::train::CostAttr":$cost,
    "::sluice::train::AlgorithmAttr":$algorithm, "::mlir::StringAttr":$rule, "::sluice::train::PlanAttr":$plan,
    "::mlir::UnitAttr":$unreached, "::mlir::DenseI64ArrayAttr":$offsets, "::sluice::train::QuantizedAttr":$quantized);
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

// Layout of a tensor, its encoding.
def Train_LayoutKind : I32EnumAttr<"LayoutKind", "physical order of a tensor's elements", [
    I32EnumAttrCase<"RowMajor", 0, "row_major">,
    I32EnumAttrCase<"NHWC", 1, "nhwc">]> {
  let cppNamespace = "::sluice::train";
  let genSpecializedAttr = 0;
}
def Train_LayoutAttr : AttrDef<TrainDialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "encoding of a tensor type that is not row-major";
  let parameters = (ins EnumParameter<Train_LayoutKind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Train_ViewAttr : AttrDef<TrainDialect, "View"> {
  let mnemonic = "view";
  let summary = "elements of a row-major tensor in another order: element (i, j, .., c) is the one at offset + i * steps[0] + j * steps[1] + .. + c";
  let description = [{
    V1: two dimensions or more, of one element or more each; a step of 1 or more for each of them but the last; the offset is 0 or more.

    ```mlir
    #train.view<[8, 12, 512, 64] from 768 by [1179648, 64, 2304]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "int64_t":$offset, ArrayRefParameter<"int64_t">:$steps);
  let assemblyFormat = "`<` `[` $shape `]` `from` $offset `by` ` ` `[` $steps `]` `>`";
  let genVerifyDecl = 1;
}

def Train_AlgorithmAttr : AttrDef<TrainDialect, "Algorithm"> {
  let mnemonic = "algorithm";
  let summary = "which of several ways a kernel computes, see Algorithm in runtime/Kernels.h: parts >= 1, granted bytes >= 0";
  let parameters = (ins "::mlir::StringAttr":$name, DefaultValuedParameter<"int64_t", "1">:$parts, DefaultValuedParameter<"int64_t", "0">:$granted);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Train_OutputAttr : AttrDef<TrainDialect, "Output"> {
  let mnemonic = "output";
  let summary = "a value of the model that programs predict or compare, in the list `train.outputs` of the module";
  let description = [{
    `loss` is the kind of the attached loss, `target` the function argument that the value is compared with, `weight` its share in the loss of
    the step; each is empty, or 1, where there is none. `kept` counts, among what @evaluate returns, the tensors that are no scalars, `part` the losses
    that the functions return beside their sum; -1: it is not there. `probabilities`: a softmax or sigmoid makes the value.

    ```mlir
    #train.output<name = "logits", loss = "mse", target = "target", kept = 0>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, DefaultValuedParameter<"::mlir::StringAttr", "::mlir::StringAttr::get($_ctxt)">:$loss,
    DefaultValuedParameter<"::mlir::StringAttr", "::mlir::StringAttr::get($_ctxt)">:$target,
    DefaultValuedParameter<"::mlir::FloatAttr", "::mlir::Builder($_ctxt).getF64FloatAttr(1)">:$weight,
    DefaultValuedParameter<"int64_t", "-1">:$kept, DefaultValuedParameter<"int64_t", "-1">:$part,
    DefaultValuedParameter<"bool", "false">:$probabilities);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Train_AdapterAttr : AttrDef<TrainDialect, "Adapter"> {
  let mnemonic = "adapter";
  let summary = "a product of two narrow matrices beside a weight, as LoRA has it, in the list `train.adapters` of the module";
  let description = [{
    What reads x base adds scale * ((x first) second), so that base + scale * first second gives the same without them. Names are those of variables, each
    of which holds its matrix or, where it says `..._transposed`, the transposed one. Hu et al. 2022. `shared`: base is read elsewhere, too.
    Of a convolution they are its weights as matrices, [outputs, all else], and 1x1 ones. `magnitude`: a vector with a number for each output, to which length
    what they make together is brought: the product is that with magnitude * V / |V| by outputs, where V = base + scale * first second (DoRA, Liu et al. 2024).

    ```mlir
    #train.adapter<base = "fc.weight", first = "fc.lora_A.weight", second = "fc.lora_B.weight", scale = 2.0 : f64, base_transposed = true>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$base, "::mlir::StringAttr":$first, "::mlir::StringAttr":$second,
    DefaultValuedParameter<"::mlir::FloatAttr", "::mlir::Builder($_ctxt).getF64FloatAttr(1)">:$scale,
    DefaultValuedParameter<"bool", "false">:$base_transposed, DefaultValuedParameter<"bool", "false">:$first_transposed,
    DefaultValuedParameter<"bool", "false">:$second_transposed, DefaultValuedParameter<"bool", "false">:$shared,
    OptionalParameter<"::mlir::StringAttr">:$magnitude);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Train_Coding : I32EnumAttr<"Coding", "what numbers of few bits stand for, see runtime/Quantization.h", [
    I32EnumAttrCase<"Symmetric", 0, "symmetric">, I32EnumAttrCase<"Asymmetric", 1, "asymmetric">,
    I32EnumAttrCase<"NormalFloat", 2, "normal_float">]> {
  let cppNamespace = "::sluice::train";
}
def Train_CodingParameter : EnumParameter<Train_Coding> {
  let defaultValue = "::sluice::train::Coding::Symmetric";
}

def Train_QuantizedAttr : AttrDef<TrainDialect, "Quantized"> {
  let mnemonic = "quantized";
  let summary = "the form of a matrix of floats in 16, 8 or 4 bits an element, see runtime/Quantization.h";
  let description = [{
    Q1: two positive extents; 16 bits in groups of 0 along 0, or 8 or 4 bits in groups of 1 or more along dimension 0 or 1.
    Q2: asymmetric of 8 or 4 bits, normal_float of 4.

    ```mlir
    #train.quantized<[768, 3072] bits 4 group 64 along 0>
    #train.quantized<[768, 3072] bits 4 group 32 along 1 coding(asymmetric)>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "int64_t":$bits, "int64_t":$group, "int64_t":$dimension,
    Train_CodingParameter:$coding);
  let assemblyFormat = "`<` `[` $shape `]` `bits` $bits `group` $group `along` $dimension (`coding` `(` $coding^ `)`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// In the runtime's terms.
    ::sluice::Quantization form() const;
    /// The type of a variable in this form: a vector of bytes, or the matrix in bf16.
    ::mlir::RankedTensorType heldType() const;
  }];
}

def Train_CostAttr : AttrDef<TrainDialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "what an op takes";
  let description = [{
    Predicted seconds of one run and bytes of workspace. With --allow-lossy=algorithms also all ways of computing that no other beats in
    both, the one in use first, each with its algorithm.

    ```mlir
    #train.cost<seconds = 1.2e-05 : f64, workspace = 4096>
    ```
  }];
  let parameters = (ins "::mlir::FloatAttr":$seconds, DefaultValuedParameter<"int64_t", "0">:$workspace, OptionalParameter<"AlgorithmAttr">:$algorithm,
    OptionalArrayRefParameter<"CostAttr">:$alternatives);
  let assemblyFormat = "`<` struct($seconds, $workspace, $algorithm) (`alternatives` `[` $alternatives^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = "/// This alternative as the cost of the op that takes it.\nCostAttr inUse() const;";
}

def Train_Role : I32EnumAttr<"Role", "what a variable is for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">,
    I32EnumAttrCase<"State", 1, "state">,
    I32EnumAttrCase<"Constant", 2, "constant">,
    I32EnumAttrCase<"Optimizer", 3, "optimizer">,
    I32EnumAttrCase<"Gradient", 4, "gradient">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Init : I32EnumAttr<"Init", "where a variable's first value comes from", [
    I32EnumAttrCase<"File", 0, "file">,
    I32EnumAttrCase<"Zero", 1, "zero">,
    I32EnumAttrCase<"One", 2, "one">,
    I32EnumAttrCase<"Kaiming", 3, "kaiming">,
    I32EnumAttrCase<"Xavier", 4, "xavier">,
    I32EnumAttrCase<"Copy", 5, "copy">,
    I32EnumAttrCase<"Norm", 6, "norm">]> {
  let cppNamespace = "::sluice::train";
}
def Train_UpdateRule : I32EnumAttr<"UpdateRule", "optimizer", [
    I32EnumAttrCase<"Sgd", 0, "sgd">,
    I32EnumAttrCase<"Adam", 1, "adam">,
    I32EnumAttrCase<"AdamW", 2, "adamw">,
    I32EnumAttrCase<"Adagrad", 3, "adagrad">,
    I32EnumAttrCase<"RmsProp", 4, "rmsprop">,
    I32EnumAttrCase<"Lamb", 5, "lamb">,
    I32EnumAttrCase<"Lion", 6, "lion">]> {
  let cppNamespace = "::sluice::train";
}
def Train_LossForm : I32EnumAttr<"LossForm", "a loss whose gradient is one op", [
    I32EnumAttrCase<"SoftmaxCrossEntropy", 0, "softmax_cross_entropy">,
    I32EnumAttrCase<"MeanSquaredError", 1, "mse">,
    I32EnumAttrCase<"BceWithLogits", 2, "bce_with_logits">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Comparison : I32EnumAttr<"Comparison", "how two numbers are compared", [
    I32EnumAttrCase<"Equal", 0, "equal">, I32EnumAttrCase<"Less", 1, "less">, I32EnumAttrCase<"LessOrEqual", 2, "less_or_equal">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Rounding : I32EnumAttr<"Rounding", "which of the whole numbers around a number", [
    I32EnumAttrCase<"Down", 0, "down">, I32EnumAttrCase<"Up", 1, "up">, I32EnumAttrCase<"NearestEven", 2, "nearest_even">,
    I32EnumAttrCase<"TowardZero", 3, "toward_zero">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Distribution : I32EnumAttr<"Distribution", "what random numbers are drawn from: [0, 1) or the standard normal one", [
    I32EnumAttrCase<"Uniform", 0, "uniform">, I32EnumAttrCase<"Normal", 1, "normal">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Trigonometry : I32EnumAttr<"Trigonometry", "a function of angles or of hyperbolic ones, or its inverse", [
    I32EnumAttrCase<"Sin", 0, "sin">, I32EnumAttrCase<"Cos", 1, "cos">, I32EnumAttrCase<"Tan", 2, "tan">, I32EnumAttrCase<"Asin", 3, "asin">,
    I32EnumAttrCase<"Acos", 4, "acos">, I32EnumAttrCase<"Atan", 5, "atan">, I32EnumAttrCase<"Sinh", 6, "sinh">, I32EnumAttrCase<"Cosh", 7, "cosh">,
    I32EnumAttrCase<"Asinh", 8, "asinh">, I32EnumAttrCase<"Acosh", 9, "acosh">, I32EnumAttrCase<"Atanh", 10, "atanh">]> {
  let cppNamespace = "::sluice::train";
}
def Train_ResizeMode : I32EnumAttr<"ResizeMode", "interpolation", [
    I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Linear", 1, "linear">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Coordinates : I32EnumAttr<"Coordinates", "ONNX coordinate_transformation_mode", [
    I32EnumAttrCase<"HalfPixel", 0, "half_pixel">, I32EnumAttrCase<"PytorchHalfPixel", 1, "pytorch_half_pixel">,
    I32EnumAttrCase<"AlignCorners", 2, "align_corners">, I32EnumAttrCase<"Asymmetric", 3, "asymmetric">]> {
  let cppNamespace = "::sluice::train";
}
def Train_NearestMode : I32EnumAttr<"NearestMode", "ONNX nearest_mode", [
    I32EnumAttrCase<"RoundPreferFloor", 0, "round_prefer_floor">, I32EnumAttrCase<"RoundPreferCeil", 1, "round_prefer_ceil">,
    I32EnumAttrCase<"Floor", 2, "floor">, I32EnumAttrCase<"Ceil", 3, "ceil">]> {
  let cppNamespace = "::sluice::train";
}
def Train_Cell : I32EnumAttr<"Cell", "what a recurrent layer computes in a step", [
    I32EnumAttrCase<"Lstm", 0, "lstm">, I32EnumAttrCase<"Gru", 1, "gru">,
    I32EnumAttrCase<"GruLinearBeforeReset", 2, "gru_linear_before_reset">, I32EnumAttrCase<"RnnTanh", 3, "rnn_tanh">,
    I32EnumAttrCase<"RnnRelu", 4, "rnn_relu">]> {
  let cppNamespace = "::sluice::train";
}

// Element types that the dialect knows today: f32, bf16 and f16 activations, i64 class ids, i8 and i32 pool indices, i1 masks (eight to a byte), i8 packed bytes.
// Tensors are static, of at most six dimensions and of less than 2^63 bytes: the runtime's Shape holds no more.
class Train_Addressable<Type tensor> : ConfinedType<tensor, [CPred<"::sluice::train::isAddressable($_self)">],
    tensor.summary # ", static, of at most 6 dimensions and less than 2^63 bytes", tensor.cppType>;
def Train_Tensor : Train_Addressable<RankedTensorOf<[F32, BF16, F16, I64, I32, I8, I1]>>;
def Train_RealOrMask : Train_Addressable<RankedTensorOf<[F32, BF16, F16, I1]>>;
def Train_Real : Train_Addressable<RankedTensorOf<[F32, BF16, F16]>>; // see PrecisionAware
def Train_Ids : Train_Addressable<RankedTensorOf<[I64]>>;
def Train_RealOrIds : Train_Addressable<RankedTensorOf<[F32, BF16, F16, I64]>>;
def Train_Float : Train_Addressable<RankedTensorOf<[F32]>>;
def Train_ByteVector : Train_Addressable<1DTensorOf<[I8]>>;
def Train_Vector : Train_Addressable<1DTensorOf<[F32]>>;
def Train_Scalar : 0DTensorOf<[F32]>;

#endif
