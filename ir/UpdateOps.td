// SPDX-License-Identifier: Apache-2.0
// Ops that change variables. build-backward places them right after what they wait for; they are never moved or cloned.
#ifndef SLUICE_IR_UPDATE_OPS
#define SLUICE_IR_UPDATE_OPS

include "ir/GradientOps.td"

defvar Train_UpdateTraits = [Train_OwnKernel, MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>,
    DeclareOpInterfaceMethods<Train_ChangesVariables>, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Train_Costed];

def Train_UpdateOp : Train_Op<"update", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # "::std::string launchName();";
  let summary = "one optimizer step on a parameter, placed right after its gradient";
  let description = [{
    Hyperparameters are run-time flags of the program.

    - C1: `parameter` names a variable with role parameter and the gradient's shape.
    - C2: `states` names as many optimizer variables as the rule keeps: sgd 1, adam and adamw 2.

    ```mlir
    train.update @fc.weight, %dw rule(sgd) states [@"fc.weight/momentum"] : tensor<10x512xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Train_Float:$gradient, Train_UpdateRule:$rule,
      TypedArrayAttrBase<FlatSymbolRefAttr, "variables">:$states);
  let assemblyFormat = "$parameter `,` $gradient `rule` `(` $rule `)` `states` $states attr-dict `:` type($gradient)";
}

def Train_UpdateStatisticsOp : Train_Op<"update_statistics", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_running">.decl;
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
