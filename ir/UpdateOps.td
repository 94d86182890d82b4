// SPDX-License-Identifier: Apache-2.0
// Ops that change variables. build-backward places them right after what they wait for; they are never cloned. Variables come as values, most often the
// last operands, and leave as results in the same bytes.
//
// From gradient to parameter, what is asked for by flags in brackets:
//  1. In every batch: the op's gradient rule builds the gradient, contributions are summed by train.add (passes/BuildBackward.cpp). In fp16 it is the
//     gradient of the loss times the loss's scale, and stays so up to step 4.
//  2. [--accumulate] In every batch: train.accumulate keeps the mean over the batches of the step; what follows reads that.
//  3. [fp16] After the last batch, of all gradients: train.check_gradients. If one is not finite, 4 to 7 change nothing, and the scale is halved.
//  4. Each reader of a gradient takes its elements so (UpdateFactors::elementOf of runtime/kernels/UpdateRules.h): divided by the scale [fp16], then
//     limited to [-v, v] [--clip-value].
//  5. [--clip-norm] train.gradient_norm, a chain over all gradients: the norm of such elements. All updates wait for it, and multiply their elements by
//     min(1, limit / (norm + 1e-6)).
//  6. train.update adds the decay after clipping: coupled, d = element + decay * parameter, or decoupled, parameter times 1 - rate * decay; then the
//     rule (runtime/Update.h) changes states and parameter. Nothing happens after all but the last batch of a step.
//  7. [--ema] The same op's second call updates the running average with the new parameter.
#ifndef SLUICE_IR_UPDATE_OPS
#define SLUICE_IR_UPDATE_OPS

include "ir/GradientOps.td"

defvar Train_UpdateTraits = [Train_OwnKernel, MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>,
    Train_ChangesVariables, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Train_Costed];

def Train_FloatOrHandle : AnyTypeOf<[Train_Float, Train_HostHandle]>;

def Train_UpdateOp : Train_Op<"update", Train_UpdateTraits # [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Train_ChangesVariables, ["changedPiece"]>, DeclareOpInterfaceMethods<Train_Costed, ["flops", "bytesMoved"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_update">.decl # "::std::string launchName();\nbool gathers() { return getRule() != UpdateRule::Lamb && !isAtHome(); }"
    # "/// Whether threads of the host run it, on host memory.\nbool isAtHome() { return ::mlir::isa<HostHandleType>(getParameter().getType()); }";
  let summary = "one optimizer step on a parameter, placed right after its gradient";
  let description = [{
    Hyperparameters are run-time flags of the program. With `norm`, that of all gradients, the step clips by it, so that it waits for all of
    them. `averaged`: a running average of the parameter, the last of the states, is updated with the new value. Where a step has several
    batches, the update runs after the last batch of a step only.

    - C1: `parameter` is a variable with role parameter and of the gradient's type.
    - C2: `states` are as many optimizer variables of its type as the rule keeps: sgd, adagrad and lion 1, adam, adamw, rmsprop and lamb 2; one more
      where the parameter is averaged.
    - C3: `sharded`: each of several ranks changes its share of the parameter alone, elements one behind the other in its layout, and keeps their states
      alone: each of these is a vector, shorter than the parameter unless that has one element, and so is the gradient where it is a share itself. Where the parameter's variable is a share all are of its type. Rules that look at whole tensors, lamb, and averages have no shares.
    - C4: `first`: the gradient is of some rows of the parameter, along its first dimension, from this one on. They are there, begin at a multiple of 256
      bytes, and are all that the op reads and changes of parameter and states. Of lamb and of shares there are no rows.
    - C5: at home, all that it takes are handles: threads of the host change parameter and states where they are, in host memory, with a gradient that came
      there. There are no lamb, no shares and no rows at home.

    ```mlir
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) : tensor<10x512xf32>
    %w2, %m2, %a2 = train.update(%dw, %w, %m, %a) norm(%n) rule(sgd) {averaged} : tensor<10x512xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) {sharded} : tensor<10x512xf32> keeping tensor<1280xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) {sharded} : tensor<1280xf32> of tensor<10x512xf32> keeping tensor<1280xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) {first = 5 : i64} : tensor<5x512xf32> of tensor<10x512xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) : !train.host<tensor<10x512xf32>>
    ```
  }];
  let arguments = (ins Train_FloatOrHandle:$gradient, Optional<AnyTypeOf<[Train_Scalar, Train_HostHandle]>>:$norm, Train_FloatOrHandle:$parameter,
      Variadic<Train_FloatOrHandle>:$states,
      Train_UpdateRule:$rule, UnitAttr:$averaged, UnitAttr:$sharded, OptionalAttr<I64Attr>:$first);
  let results = (outs Variadic<Train_FloatOrHandle>:$updated);
  let assemblyFormat = ?; // the class's
  let hasCustomAssemblyFormat = 1;
}

def Train_AccumulateOp : Train_Op<"accumulate", Train_UpdateTraits # [AllTypesMatch<["gradient", "sum", "added"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # "bool gathers() { return true; }";
  let summary = "a gradient joins the mean over the batches of a step";
  let description = [{
    The variable `sum` holds the mean of the step's batches so far; the first one replaces it. A batch weighs its share of the targets that were counted so far
    (StepState::batchShare of runtime/Stream.h), so that the last one leaves the gradient of one large batch.

    - C1: `sum` is a variable with role gradient.

    ```mlir
    %sum2 = train.accumulate %dw, %sum : tensor<10x512xf32>
    ```
  }];
  let arguments = (ins Train_Float:$gradient, Train_Float:$sum);
  let results = (outs Train_Float:$added);
  let assemblyFormat = "$gradient `,` $sum attr-dict `:` type($gradient)";
}

def Train_CheckGradientsOp : Train_Op<"check_gradients", Train_UpdateTraits # [
    DeclareOpInterfaceMethods<Train_ChangesVariables, ["changedOperand"]>, AllTypesMatch<["scale", "good", "skipped", "new_scale", "new_good", "new_skipped"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl;
  let summary = "whether the gradients of a scaled loss are finite, in front of all that reads them, and the scale of the next step";
  let description = [{
    Where the module says `train.precision = "fp16"`, the gradient of the loss is @"train/loss_scale" instead of one. Norms and updates after this op
    divide gradients by it. If an element of a gradient is no finite number, those updates change nothing, the scale is halved and the
    step counts as skipped; else it is a good one, enough of which in a row double the scale. Where a step has several batches, nothing happens after
    all but the last.

    - C1: `scale`, `good` and `skipped` are optimizer variables.

    ```mlir
    %scale2, %good2, %skipped2 = train.check_gradients %dw, %db of %scale, %good, %skipped : tensor<10x512xf32>, tensor<10xf32> of tensor<f32>
    ```
  }];
  let arguments = (ins Train_Scalar:$scale, Train_Scalar:$good, Train_Scalar:$skipped, Variadic<Train_Float>:$gradients);
  let results = (outs Train_Scalar:$new_scale, Train_Scalar:$new_good, Train_Scalar:$new_skipped);
  let assemblyFormat = "$gradients `of` $scale `,` $good `,` $skipped attr-dict `:` type($gradients) `of` type($scale)";
}

def Train_GradientNormOp : Train_Op<"gradient_norm", [Pure, Train_OwnKernel, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_norm", results = ["_norm"]>.decl;
  let summary = "Euclidean norm of a gradient and of those before it";
  let description = [{
    sqrt(before^2 + sum(gradient^2)), of gradients whose elements are clipped as the update clips them. The sum is in double, in an order
    that depends on the extents alone. A chain of these gives the norm of all gradients.

    ```mlir
    %all = train.gradient_norm %dw behind %others : tensor<10x512xf32>, tensor<f32> -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Float:$gradient, Optional<Train_Scalar>:$before);
  let results = (outs Train_Scalar:$norm);
  let assemblyFormat = "$gradient (`behind` $before^)? attr-dict `:` type($gradient) (`,` type($before)^)? `->` type($norm)";
}

def Train_UpdateStatisticsOp : Train_Op<"update_statistics", Train_UpdateTraits # [AllTypesMatch<["mean", "rstd", "running_mean", "running_var", "new_mean", "new_var"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_running">.decl # "bool gathers() { return true; }";
  let summary = "running mean and variance of a BatchNorm are updated with this batch";
  let description = [{
    running = (1 - momentum) * running + momentum * batch; the variance is unbiased with `count` elements a channel (PyTorch's meaning).
    An op of its own, so that recomputing the normalization does not count a batch twice.

    - C1: both running vectors are state variables.

    ```mlir
    %m2, %v2 = train.update_statistics %mean, %rstd, %m, %v {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 4096 : i64} : tensor<64xf32>
    ```
  }];
  let arguments = (ins Train_Vector:$mean, Train_Vector:$rstd, Train_Vector:$running_mean, Train_Vector:$running_var,
      F32Attr:$momentum, F32Attr:$epsilon, I64Attr:$count);
  let results = (outs Train_Vector:$new_mean, Train_Vector:$new_var);
  let assemblyFormat = "$mean `,` $rstd `,` $running_mean `,` $running_var attr-dict `:` type($mean)";
}

#endif
