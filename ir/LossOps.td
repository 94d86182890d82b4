// SPDX-License-Identifier: Apache-2.0
// Losses that the frontend attaches or finds at a model's end, and the count of right answers.
#ifndef SLUICE_IR_LOSS_OPS
#define SLUICE_IR_LOSS_OPS

include "ir/ForwardOps.td"

class Train_LossOp<string mnemonic, string more = "", list<Trait> traits = []> : Train_ForwardOp<mnemonic, [Train_OwnKernel] # traits> {
  let extraClassDeclaration = Train_KernelFacts<"Loss", launch = "loss">.decl # Train_RoleIs<"Loss">.decl # more;
  let results = (outs Train_Scalar:$loss);
}
def Train_SoftmaxCrossEntropyOp : Train_LossOp<"softmax_cross_entropy", "::sluice::sched::IdsAttr ids();",
    [DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference", "isResultWide"]>]> {
  let summary = "mean cross-entropy of softmax(logits) against class ids";
  let description = [{
    The mean is over the targets that are not `ignore_index`, where there is one; over none of them it is 0, like its gradients.
    With `classes` the first so many of a sample's logits are those of classes; what stands behind them is not read. Logits may be of 16 bits, the arithmetic is of floats.
    With `first` the logits are some rows of a batch, from that one on, and the target is the whole batch's: the result is the rows' share of the batch's mean, so that
    those of all rows add up to it.

    - C1: logits are [N,K,d...], target is i64 [N,d...].
    - C2: `classes` are 1 to K.
    - C3: with `first` logits are [N,K], and the target is [M] with 0 <= first and first + N <= M.

    ```mlir
    %loss = train.softmax_cross_entropy %logits, %target : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Real:$x, RankedTensorOf<[I64]>:$target, OptionalAttr<I64Attr>:$ignore_index, OptionalAttr<I64Attr>:$classes,
      OptionalAttr<I64Attr>:$first);
}
def Train_MseOp : Train_LossOp<"mse"> {
  let summary = "mean of squared differences";
  let description = [{
    - C1: x and target have one shape.

    ```mlir
    %loss = train.mse %x, %target : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Float:$target);
}
def Train_BceWithLogitsOp : Train_LossOp<"bce_with_logits"> {
  let summary = "mean binary cross-entropy of sigmoid(x) against targets in [0,1]";
  let description = [{
    The mean is over the targets that are not `ignore_index`, where there is one; over none of them it is 0, like its gradients.
    `pos_weight` weighs the target's share of each element, as that of torch.nn.BCEWithLogitsLoss: p t log(sigmoid(x)) + (1 - t) log(1 - sigmoid(x)).

    - C1: x and target have one shape.
    - C2: `pos_weight` has x's rank, x's extent in one dimension at most, and 1 in the others.

    ```mlir
    %loss = train.bce_with_logits %x, %target, %weights : (tensor<16x5xf32>, tensor<16x5xf32>, tensor<1x5xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Float:$target, Optional<Train_Float>:$pos_weight, OptionalAttr<I64Attr>:$ignore_index);
}
def Train_CtcLossOp : Train_LossOp<"ctc_loss", "::sluice::sched::IdsAttr ids();"> {
  let summary = "connectionist temporal classification: how likely log_softmax(x) spells the labels, whatever steps they take";
  let description = [{
    Graves et al. 2006, equations 6 to 16. The mean over the samples of what torch.nn.CTCLoss calls so: each loss over its number of labels
    (1 at least). Labels end before the first that is `blank` or `ignore_index`, or where the last of `lengths` says; with `counts_steps` the first
    of `lengths` says how many steps of a sample count. A target that its steps cannot spell has the loss infinity, or with `zero_infinity` 0.
    x may be any scores: the logarithm of a softmax is its own.

    - C1: x is [N,steps,classes], target i64 [N,labels].
    - C2: `blank` is a class.
    - C3: `lengths` are i64 [N], two at most.

    ```mlir
    %loss = train.ctc_loss %scores, %target {blank = 0 : i64} : (tensor<16x50x28xf32>, tensor<16x12xi64>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Float:$x, RankedTensorOf<[I64]>:$target, Variadic<RankedTensorOf<[I64]>>:$lengths, I64Attr:$blank,
      OptionalAttr<I64Attr>:$ignore_index, UnitAttr:$counts_steps, UnitAttr:$zero_infinity);
}

def Train_CountCorrectOp : Train_Op<"count_correct", [Train_OwnKernel, Pure, Train_Costed,
    DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>]> {
  let extraClassDeclaration = "bool accumulates() { return true; }\n::sluice::sched::IdsAttr ids();";
  let summary = "number of samples whose largest logit is the target's; evaluation only";
  let description = [{
    - C1: logits are [N,K,d...]; `classes`, where given, are 1 to K: the first so many are read.

    ```mlir
    %n = train.count_correct %logits, %target : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<i64>
    ```
  }];
  let arguments = (ins Train_Real:$x, RankedTensorOf<[I64]>:$target, OptionalAttr<I64Attr>:$classes);
  let results = (outs 0DTensorOf<[I64]>:$count);
  let hasVerifier = 1;
}

#endif
