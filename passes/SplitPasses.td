// SPDX-License-Identifier: Apache-2.0
// The passes that compute something in parts.
#ifndef SLUICE_PASSES_SPLIT_PASSES
#define SLUICE_PASSES_SPLIT_PASSES

include "mlir/Pass/PassBase.td"

def Split : Pass<"sluice-split", "::mlir::ModuleOp"> {
  let summary = "compute the scores of a large vocabulary, their loss and their gradient in parts of the rows, one after the other";
  let description = [{
    For `parts` above 1, of the mean cross-entropy with the most scores: what makes its scores row by row, from products with weights on, and
    in @step what comes of their gradient, up to sums over the rows and to products with weights again, is put there once for each part of the rows, forward and backward,
    so that one part's scores live at a time.

    - A part reads its rows of what the products read: a train.slice, a piece where linearize finds it free. Targets stay whole; `first` of the loss says which rows a part is, and
      its denominator is the whole batch's.
    - Gradients of weights are added to in place, in the order of the parts; rows of other gradients are joined. The loss is the sum of the parts' shares.
    - All of a part is backward, as it runs between what others make forward and their gradients; ops are numbered anew.
    - @evaluate computes its loss in as many parts. It returns no scores any more and counts no right answers: a remark says so.

    Row by row are products with one matrix, sums with one row, reshapes that keep rows together, and elementwise ops without draws. Where anything else makes the scores or reads them, or the
    loss is another one, the pass fails and says what it is.

    ```mlir
    %y = train.matmul %x, %w {train.forward = 7, transpose_b = true} : (tensor<64x32xf32>, tensor<521x32xf32>) -> tensor<64x521xf32>
    %loss = train.softmax_cross_entropy %y, %target {train.forward = 8} : ...
    %dy = train.loss_backward softmax_cross_entropy %y, %target {train.backward = 8} : ...
    %dw = train.matmul %dy, %x {train.backward = 7, transpose_a = true} : ...
    %dx = train.matmul %dy, %w {train.backward = 7} : ...
    ```
    becomes, with `parts=2`,
    ```mlir
    %x1 = train.slice %x {axis = 0 : i64, length = 32 : i64, start = 0 : i64, train.backward = 6} : ...
    %y1 = train.matmul %x1, %w {train.backward = 6, transpose_b = true} : (tensor<32x32xf32>, tensor<521x32xf32>) -> tensor<32x521xf32>
    %loss1 = train.softmax_cross_entropy %y1, %target {first = 0 : i64, train.backward = 6} : (tensor<32x521xf32>, tensor<64xi64>) -> tensor<f32>
    %dy1 = train.loss_backward softmax_cross_entropy %y1, %target {first = 0 : i64, train.backward = 6} : ...
    %dw1 = train.matmul %dy1, %x1 {train.backward = 6, transpose_a = true} : ...
    %dx1 = train.matmul %dy1, %w {train.backward = 6} : ...
    %x2 = train.slice %x {axis = 0 : i64, length = 32 : i64, start = 32 : i64, train.backward = 6} : ...
    ...
    %loss = train.add %loss1, %loss2 {train.backward = 6} : ...
    %dw = train.matmul %dy2, %x2, %dw1 {train.backward = 6, transpose_a = true} : ...
    %dx = train.concat %dx1, %dx2 {axis = 0 : i64, train.backward = 6} : ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"parts", "parts", "int64_t", "1", "parts of the rows; 1: all stays whole">];
  let statistics = [Statistic<"regions", "regions", "functions whose loss is computed in parts">, Statistic<"withdrawn", "withdrawn", "functions that return no scores any more">];
}

def SplitStep : Pass<"sluice-split-step", "::mlir::ModuleOp"> {
  let summary = "compute a step, and its evaluation, for some rows after the other: samples of the batch, or rows of its images";
  let description = [{
    For `parts` above 1. Ops in which samples are apart are there once for each part of the batch: convolutions, products, pools, attention, what is elementwise, and their
    gradients. Parts are values of their own, which plans keep, move and make again one by one.

    - A part goes as far as it gets before the next one begins. Without BatchNorm that is the whole step, forward and backward, so that one part's activations live at a time. BatchNorm's statistics,
      and the channel sums of its gradient, are of all samples: what reads them begins when all parts have come that far.
    - Gradients of weights are added up in the order of the parts, those of products in place; losses are means weighted by the parts' numbers of samples. A cross-entropy's
      `first` says which rows it has, so that it divides by the batch's targets that count. Means and variances of the parts make those of the batch.
    - What mixes samples, draws random numbers by place or reads class ids of a part is computed for all samples at once: parts are joined for it (train.concat), and read as slabs
      of its result (train.slice).
    - `along=image` cuts images along their first spatial dimension instead, volumes into slices: what has windows, what is elementwise, BatchNorm. A window's part ends with the last window that has all
      its rows, so that borders move up from op to op; what a part needs of the one before is put in front of its own rows (train.slice, train.concat), and no row is computed twice. Losses, and all that
      reads an image as a whole, are computed whole.
    - train.batch_norm is split first, as fuse does. Ops are numbered anew; a forward op after a gradient counts for the backward half.

    ```mlir
    %y = train.conv %x, %w {train.forward = 0, ...} : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x32x32xf32>
    %mean, %rstd = train.batch_norm_statistics %y {train.forward = 1, ...} : ...
    ```
    becomes, with `parts=2`,
    ```mlir
    %x1 = train.slice %x {axis = 0 : i64, length = 4 : i64, start = 0 : i64, train.forward = 0} : ...
    %y1 = train.conv %x1, %w {train.forward = 1, ...} : (tensor<4x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<4x16x32x32xf32>
    %m1, %r1 = train.batch_norm_statistics %y1 {train.forward = 2, ...} : ...
    %x2 = train.slice %x {axis = 0 : i64, length = 4 : i64, start = 4 : i64, train.forward = 3} : ...
    ...
    %mean = train.add %half1, %half2 ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"along", "along", "::sluice::CutAlong", "::sluice::CutAlong::Batch", "what is cut", [{llvm::cl::values(
      clEnumValN(::sluice::CutAlong::Batch, "batch", "samples"), clEnumValN(::sluice::CutAlong::Image, "image", "rows of images"))}]>,
    Option<"parts", "parts", "int64_t", "1", "parts; 1: all stays whole">,
    Option<"above", "above", "int64_t", "0", "ops in parts read and write so many bytes of rows or more">];
  let statistics = [Statistic<"partedOps", "parted-ops", "ops that are computed in parts">];
}

def SplitUpdates : Pass<"sluice-split-updates", "::mlir::ModuleOp"> {
  let summary = "make a large weight's gradient, and update the weight by it, for some rows after the other";
  let description = [{
    For `above` greater than 0. The gradient of a weight that is larger, made by one product or convolution without groups and read by one update alone, is there once for each part of the
    weight's first dimension, right in front of an update of those rows, so that no more than `above` bytes of it live at a time. Parts are as equal as they can be where each begins at a multiple of
    256 bytes of the weight.

    - A part reads its rows of what the gradient is made of: a train.slice of the output's gradient, along its channels or columns.
    - Updates follow one another, each on the values that the one before left (`first` of train.update), so that the variable stays on the device.
    - An update that waits for all gradients (`norm`), for other batches of the step, or looks at the whole tensor (lamb) needs its gradient whole. Where no gradient is as large and can be cut, the pass
      fails if it `insists`.

    ```mlir
    %dw = train.matmul %dy, %x {transpose_a = true, train.backward = 0} : (tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<64x128xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) {train.backward = 0} : tensor<64x128xf32>
    ```
    becomes, with `above=16384`,
    ```mlir
    %dy1 = train.slice %dy {axis = 1 : i64, length = 32 : i64, start = 0 : i64, train.backward = 0} : ...
    %dw1 = train.matmul %dy1, %x {transpose_a = true, train.backward = 0} : (tensor<8x32xf32>, tensor<8x128xf32>) -> tensor<32x128xf32>
    %w2, %m2 = train.update(%dw1, %w, %m) rule(sgd) {first = 0 : i64, train.backward = 0} : tensor<32x128xf32> of tensor<64x128xf32>
    %dy2 = train.slice %dy {axis = 1 : i64, length = 32 : i64, start = 32 : i64, train.backward = 0} : ...
    ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"above", "above", "int64_t", "0", "bytes of a weight's gradient that are there at a time; 0: all">,
    Option<"insists", "insists", "bool", "true", "that there is such a gradient">];
  let statistics = [Statistic<"weights", "weights", "weights whose gradients are made in rows">];
}

#endif
