// SPDX-License-Identifier: Apache-2.0
// Ops of a step that several ranks take together (--ranks). reduce-gradients makes them; they are never cloned, but for what home-variables makes.
//
// A step's batches are its units: with R ranks and A batches a rank, unit u = rank * A + batch of R * A. What a sum over all units is does not depend on
// R where it is ordered: units are the leaves of one binary tree, in which neighbours are added, then neighbours of those, as carries ripple through a
// counter; what remains at the end is added from the smallest part to the largest. A rank adds up its own part of the tree (train.sum_batches), then all
// ranks the rest (train.all_reduce). So A is a power of two where there are several ranks.
#ifndef SLUICE_IR_COLLECTIVE_OPS
#define SLUICE_IR_COLLECTIVE_OPS

include "ir/NormOps.td"
include "ir/UpdateOps.td"

def Train_SumBatchesOp : Train_Op<"sum_batches", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl;
  let summary = "what a batch adds to a sum over the batches of a step joins a rank's part of the tree";
  let description = [{
    In every batch. The variables `sums` are the counter's digits: sum i holds 2^i batches that are added up, or nothing; the last one takes all that
    is carried to it. After the last batch the last variable holds the sum of all. `weighted`: of a gradient, which weighs the share of targets that
    count in its batch (StepState::unitWeight of runtime/Stream.h).

    - C1: `sums`, one or more, are variables with role gradient and of the type of `x`; each has a result.

    ```mlir
    %a2, %b2 = train.sum_batches %dw, %a, %b {weighted} : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$x, Variadic<Train_Float>:$sums, UnitAttr:$weighted);
  let results = (outs Variadic<Train_Float>:$added);
}

defvar Train_RoomTraits = [Train_OwnKernel, MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>, Train_Costed, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Train_NeedsRoom, ["roomElements"]>];

/// Sums over ranks of tensors that go in one message.
class Train_RankSumOp<string mnemonic, string suffix> : Train_Op<mnemonic, Train_RoomTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # Train_RoleIs<"Reduce">.decl # [{
    ::llvm::StringRef resultSuffix(unsigned, bool) { return "}] # suffix # [{"; }
    /// The results without the room.
    ::mlir::ResultRange getSums() { return (*this)->getResults().take_front(getXs().size()); }
  }];
  let results = (outs Variadic<Train_Float>:$made);
  let assemblyFormat = "$xs (`in` $room^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_AllReduceOp : Train_RankSumOp<"all_reduce", "_all"> {
  let summary = "the sums of several tensors over all ranks, which each of them gets, in one message";
  let description = [{
    After the last batch of a step; nothing happens after the others. It runs on the comm stream, beside what computes: all ranks run the same program, so that
    they meet in the same order; none of these is under a condition. `mean`: of gradients, which are divided by the weight of all units; `weighted`: which each
    rank's batch is multiplied by first, where nothing has done so. `ordered`: in the tree; else in the order that the library takes.

    `room` is where tensors are packed together and what others send is received.

    - C1: a result of the type of each tensor, then, where there is one, the room.

    ```mlir
    %all:2 = train.all_reduce %dw, %db {mean, ordered} : (tensor<10x512xf32>, tensor<10xf32>) -> (tensor<10x512xf32>, tensor<10xf32>)
    %dw_all, %room2 = train.all_reduce %dw in %room {mean, ordered} : (tensor<10x512xf32>, tensor<6144xf32>) -> (tensor<10x512xf32>, tensor<6144xf32>)
    ```
  }];
  let arguments = (ins Variadic<Train_Float>:$xs, Optional<Train_Float>:$room, UnitAttr:$mean, UnitAttr:$weighted, UnitAttr:$ordered);
}

def Train_ReduceScatterOp : Train_RankSumOp<"reduce_scatter", "_share"> {
  let summary = "the sums of gradients over all ranks, of each of which a rank gets the share that it updates, in one message";
  let description = [{
    With --shard=gradients, as train.all_reduce {mean}: in the tree, whatever the library's order is. Shares are those of train.update {sharded}; a rank that has
    less than the result has room for leaves the rest as it was.

    - C1: a vector for each tensor, shorter unless that has one element, then, where there is one, the room.

    ```mlir
    %parts:2 = train.reduce_scatter %dw, %db : (tensor<10x512xf32>, tensor<10xf32>) -> (tensor<1280xf32>, tensor<3xf32>)
    ```
  }];
  let arguments = (ins Variadic<Train_Float>:$xs, Optional<Train_Float>:$room, UnitAttr:$weighted);
}

def Train_SharesNormOp : Train_Op<"shares_norm", Train_RoomTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_norm">.decl # Train_RoleIs<"Reduce">.decl # [{
    ::llvm::StringRef resultSuffix(unsigned, bool) { return "_norm"; }
  }];
  let summary = "Euclidean norm of a gradient of which each rank has a share, and of those before it";
  let description = [{
    The bits of train.gradient_norm of the whole gradient, of so many `elements`: that adds up parts in double, whose sums each come of one rank, which gets
    the end of a part from those behind it (into `room`). All ranks get the sums of all parts.

    - C1: the gradient is a share, a vector shorter than the elements unless there is one; the results are a scalar and, where there is one, the room.

    ```mlir
    %all = train.shares_norm %dw_share behind %others {elements = 5120 : i64} : (tensor<1280xf32>, tensor<f32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_Vector:$gradient, Optional<Train_Scalar>:$before, Optional<Train_Float>:$room, I64Attr:$elements);
  let results = (outs Variadic<Train_Float>:$made);
  let assemblyFormat = "$gradient (`behind` $before^)? (`in` $room^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_AllGatherOp : Train_Op<"all_gather", Train_UpdateTraits> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # Train_RoleIs<"Gather">.decl;
  let summary = "parameters of which each rank has updated its share are whole again in all of them";
  let description = [{
    After the last batch of a step, in one message, on the comm stream; nothing happens after the others. Shares are those of train.update {sharded}.

    - C1: `parameters`, one or more, are variables with role parameter; each has a result.

    ```mlir
    %w3, %b3 = train.all_gather %w2, %b2 : (tensor<10x512xf32>, tensor<10xf32>) -> (tensor<10x512xf32>, tensor<10xf32>)
    ```
  }];
  let arguments = (ins Variadic<Train_Float>:$parameters);
  let results = (outs Variadic<Train_Float>:$gathered);
}

def Train_GatherSharesOp : Train_Op<"gather_shares", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_MovesContent>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl # Train_RoleIs<"Gather">.decl;
  let summary = "a parameter of which each rank has a share is whole in all of them, for the op that reads it next";
  let description = [{
    With --shard=parameters, in every batch and in evaluations, on the comm stream. Created by home-variables right before each op that reads the parameter, as
    train.prefetch is for what is at home in another arena; apply-plan moves it and repeats it for what runs again likewise. The result is dropped behind that op.

    - C1: the operand is the train.read of a share, of a variable whose `train.whole` is the result's type.

    ```mlir
    %s = train.read @w : tensor<1280xf32>
    %w = train.gather_shares %s : (tensor<1280xf32>) -> tensor<10x512xf32>
    ```
  }];
  let arguments = (ins Train_Vector:$share);
  let results = (outs Train_Float:$whole);
}

def Train_BatchStatisticsOp : Train_Op<"batch_statistics", [Pure, Train_OwnKernel, Train_Costed, AllTypesMatch<["mean", "rstd"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update", object = "_shares", results = ["_shares"]>.decl;
  let summary = "what a batch adds to the running mean and variance of a BatchNorm, the first row and the second";
  let description = [{
    Normalization itself is of each batch alone. Running statistics take one batch after the other, of all ranks: after U units they are (1 - momentum)^U of
    what they were and momentum * (1 - momentum)^(U - 1 - u) of unit u's. This is that share of the batch at hand, the variance unbiased with `count` elements
    a channel, so that the shares only have to be added up.

    `ranks`: of statistics that so many ranks have in common, which a step of U units takes U / ranks of. The first of these ranks has the share, the others
    have zeros.

    - C1: the result has two rows, each as long as `mean`.

    ```mlir
    %s = train.batch_statistics %mean, %rstd {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 4096 : i64} : tensor<64xf32> -> tensor<2x64xf32>
    ```
  }];
  let arguments = (ins Train_Vector:$mean, Train_Vector:$rstd, F32Attr:$momentum, F32Attr:$epsilon, I64Attr:$count,
      Train_NormRanks:$ranks);
  let results = (outs Train_Float:$shares);
  let assemblyFormat = "$mean `,` $rstd attr-dict `:` type($mean) `->` type($shares)";
  let hasVerifier = 1;
}

def Train_ApplyStatisticsOp : Train_Op<"apply_statistics", Train_UpdateTraits # [AllTypesMatch<["running_mean", "running_var", "new_mean", "new_var"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Update">.decl;
  let summary = "running mean and variance take the shares of all units of a step";
  let description = [{
    running = (1 - momentum)^(U / ranks) * running + sum, after the last batch of a step of U units; `ranks` is that of train.batch_statistics.

    - C1: both running vectors are state variables; the sum has two rows of their length.

    ```mlir
    %m2, %v2 = train.apply_statistics %sum, %m, %v {momentum = 1.0e-1 : f32} : tensor<2x64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins Train_Float:$sum, Train_Vector:$running_mean, Train_Vector:$running_var, F32Attr:$momentum, Train_NormRanks:$ranks);
  let results = (outs Train_Vector:$new_mean, Train_Vector:$new_var);
  let assemblyFormat = "$sum `,` $running_mean `,` $running_var attr-dict `:` type($sum) `,` type($running_mean)";
}

// Synchronized BatchNorm: what PyTorch's SyncBatchNorm computes. The `ranks` ranks that normalize together are equally far apart: of R ranks with A batches, units u and v meet where u - v is a multiple of R * A / ranks. So the units that meet depend on
// their number in a step alone, not on how many ranks they are spread over. In every batch, on the comm stream; never run again, as their results are kept.

def Train_SynchronizeStatisticsOp : Train_Op<"synchronize_statistics", [Pure, Train_OwnKernel, Train_Costed,
    AllTypesMatch<["mean", "rstd", "joint_mean", "joint_rstd"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm", object = "_joint", results = ["_joint_mean", "_joint_rstd"]>.decl # Train_RoleIs<"Reduce">.decl;
  let summary = "mean and 1/sqrt(variance + epsilon) of the batches of several ranks together, given those of each";
  let description = [{
    Batches are equally large: the mean is that of the means, the variance that of the variances plus the means' own. Computed in double by each rank, in the
    order of ranks. Created by fuse from train.batch_norm.

    ```mlir
    %m, %r = train.synchronize_statistics %mean, %rstd {epsilon = 1.0e-5 : f32, ranks = 4 : i64} : tensor<64xf32>
    ```
  }];
  let arguments = (ins Train_Vector:$mean, Train_Vector:$rstd, F32Attr:$epsilon, Train_NormRanks:$ranks);
  let results = (outs Train_Vector:$joint_mean, Train_Vector:$joint_rstd);
  let assemblyFormat = "$mean `,` $rstd attr-dict `:` type($mean)";
}

def Train_SynchronizeSumsOp : Train_Op<"synchronize_sums", [Pure, Train_OwnKernel, Train_Costed,
    AllTypesMatch<["dscale", "dbias", "joint_dscale", "joint_dbias"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"Norm", object = "_joint_grad", results = ["_joint_dscale", "_joint_dbias"]>.decl # Train_RoleIs<"Reduce">.decl;
  let summary = "the channel sums of a BatchNorm's gradient over the batches of several ranks";
  let description = [{
    What the gradient with respect to x divides by the number of elements of all these batches. Added in the tree of train.all_reduce, with those ranks as its
    leaves. Created by fuse from train.batch_norm_backward.

    ```mlir
    %ds, %db = train.synchronize_sums %dscale, %dbias {ranks = 4 : i64} : tensor<64xf32>
    ```
  }];
  let arguments = (ins Train_Vector:$dscale, Train_Vector:$dbias, Train_NormRanks:$ranks);
  let results = (outs Train_Vector:$joint_dscale, Train_Vector:$joint_dbias);
  let assemblyFormat = "$dscale `,` $dbias attr-dict `:` type($dscale)";
}

def Train_UnitWeightOp : Train_Op<"unit_weight", [Pure, Train_OwnKernel, Train_Costed]> {
  let extraClassDeclaration = Train_KernelFacts<"Loss", results = ["_weight"]>.decl;
  let summary = "what this batch weighs in the loss of a step: the share of its targets that count";
  let description = [{
    The gradient of the loss where BatchNorms are synchronized: through them a batch's loss has a gradient in other ranks' activations, which each of these
    would weigh by its own batch if gradients were weighed at their end, as train.all_reduce and train.sum_batches do elsewhere. Created by build-backward.

    ```mlir
    %w = train.unit_weight : tensor<f32>
    ```
  }];
  let arguments = (ins);
  let results = (outs Train_Scalar:$weight);
  let assemblyFormat = "attr-dict `:` type($weight)";
}

#endif
