// SPDX-License-Identifier: Apache-2.0
// Ops that change variables. build-backward places them right after what they wait for; they are never moved or cloned.
#ifndef SLUICE_IR_UPDATE_OPS
#define SLUICE_IR_UPDATE_OPS

include "ir/GradientOps.td"

defvar Train_UpdateTraits = [Train_OwnKernel, MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>,
    DeclareOpInterfaceMethods<Train_ChangesVariables>, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Train_Costed];

def Train_UpdateOp : Train_Op<"update", Train_UpdateTraits # [DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_update">.decl # "::std::string launchName();\nbool gathers() { return getRule() != UpdateRule::Lamb; }";
  let summary = "one optimizer step on a parameter, placed right after its gradient";
  let description = [{
    Hyperparameters are run-time flags of the program. With `norm`, that of all gradients, the step clips by it, so that it waits for all of
    them. `averaged`: a running average of the parameter, the last of the states, takes in the new value. Where a step has several
    batches, the update does nothing after all but the last.

    - C1: `parameter` names a variable with role parameter and the gradient's shape.
    - C2: `states` names as many optimizer variables as the rule keeps: sgd, adagrad and lion 1, adam, adamw, rmsprop and lamb 2; one more
      where the parameter is averaged.

    ```mlir
    train.update @fc.weight, %dw rule(sgd) states [@"fc.weight/momentum"] : tensor<10x512xf32>
    train.update @fc.weight, %dw norm %n rule(sgd) states [@"fc.weight/momentum", @"fc.weight/ema"] {averaged} : tensor<10x512xf32>, tensor<f32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Train_Float:$gradient, Optional<Train_Scalar>:$norm, Train_UpdateRule:$rule,
      TypedArrayAttrBase<FlatSymbolRefAttr, "variables">:$states, UnitAttr:$averaged);
  let assemblyFormat = [{
    $parameter `,` $gradient (`norm` $norm^)? `rule` `(` $rule `)` `states` $states attr-dict `:` type($gradient) (`,` type($norm)^)?
  }];
}

def Train_AccumulateOp : Train_Op<"accumulate", Train_UpdateTraits # [DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # "bool gathers() { return true; }";
  let summary = "a gradient joins the sum over the batches of a step";
  let description = [{
    The first batch of a step replaces the sum. Each counts one over the number of batches, so that the sum is the gradient of their mean loss.

    - C1: `sum` names a variable with role gradient and the gradient's shape.

    ```mlir
    train.accumulate @"fc.weight/gradient_sum", %dw : tensor<10x512xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$sum, Train_Float:$gradient);
  let assemblyFormat = "$sum `,` $gradient attr-dict `:` type($gradient)";
}

def Train_CheckGradientsOp : Train_Op<"check_gradients", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl;
  let summary = "whether the gradients of a scaled loss are finite, in front of all that reads them, and the scale of the next step";
  let description = [{
    Where the module says `train.precision = "fp16"`, the gradient of the loss is @"train/loss_scale" instead of one. Norms and updates after this op
    divide gradients by it. If an element of a gradient is no finite number, those updates change nothing, the scale is halved and the
    step counts as skipped; else it is a good one, enough of which in a row double the scale. Where a step has several batches, nothing happens after
    all but the last.

    - C1: `scale`, `good` and `skipped` name optimizer variables of the type of `value`, what `scale` was when the step began.

    ```mlir
    train.check_gradients @"train/loss_scale", @"train/good_steps", @"train/skipped_steps", %scale of %dw, %db : tensor<f32>, tensor<10x512xf32>, tensor<10xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$scale, FlatSymbolRefAttr:$good, FlatSymbolRefAttr:$skipped, Train_Scalar:$value,
      Variadic<Train_Float>:$gradients);
  let assemblyFormat = "$scale `,` $good `,` $skipped `,` $value `of` $gradients attr-dict `:` type($value) `,` type($gradients)";
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

def Train_UpdateStatisticsOp : Train_Op<"update_statistics", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_running">.decl # "bool gathers() { return true; }";
  let summary = "running mean and variance of a BatchNorm take in this batch";
  let description = [{
    running = (1 - momentum) * running + momentum * batch; the variance is unbiased with `count` elements a channel (PyTorch's meaning).
    An op of its own, so that recomputing the normalization does not count a batch twice.

    - C1: both symbols name state variables of mean's shape.

    ```mlir
    train.update_statistics @bn1.running_mean, @bn1.running_var, %mean, %rstd {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 4096 : i64} : tensor<64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$running_mean, FlatSymbolRefAttr:$running_var, Train_Vector:$mean, Train_Vector:$rstd,
      F32Attr:$momentum, F32Attr:$epsilon, I64Attr:$count);
  let assemblyFormat = "$running_mean `,` $running_var `,` $mean `,` $rstd attr-dict `:` type($mean) `,` type($rstd)";
}

#endif
