// SPDX-License-Identifier: Apache-2.0
// All passes, in pipeline order, which Pipeline.cpp follows. "Functions" are all train functions of the module, @step and @evaluate, "programs" what became
// of them. lint.sh puts the table in front of the reference page.
//
// | pass | needs | leaves | works on | a wrong order is |
// |---|---|---|---|---|
// | recompose | the frontend's ops, or any train ops | one op for what exports write as several | functions | no error: what it does not recognize stays |
// | build-decode | what recompose makes of attention | a function of one token a text, and evaluations that store keys and values | functions | no error: without train.attention there is no such function |
// | build-backward | forward ops that have gradients: none is fused yet | gradient and update ops, `train.forward`, `train.backward`, variables of the optimizer | @step; others read averages | an error: the op has no gradient rule |
// | split (--parts) | gradient ops: none is fused yet | losses of rows with `first`, train.concat of their gradients, none of both forward | functions | an error: there are fused ops |
// | split-step (--parts=batch=N, image=N) | gradient ops: none is fused yet | ops of parts, no train.batch_norm | @step and @evaluate | an error: there are fused ops |
// | split-updates (--parts=weights=SIZE) | updates, and the ops that make their gradients: none is fused yet | updates of rows, one behind the other | @step | an error: there are fused ops |
// | reduce-gradients (--ranks) | updates; none is fused yet | train.all_reduce, train.reduce_scatter, train.shares_norm, train.sum_batches, train.all_gather, no train.accumulate | @step | an error: no updates, or there are fused ops |
// | fuse-epilogues (cuda, 16 bits) | train.batch_norm and elementwise ops as they are | train.conv_statistics, train.conv_backward_norm, train.matmul_gelu, train.matmul_gelu_backward | functions | an error: there are fused ops |
// | fuse | build-backward, as train.fused has no gradient | no elementwise op outside of train.fused, no train.batch_norm | functions | an error of every later pass that needs kernels: the op has none (`checkKernels`) |
// | assign-layouts | types without halves, no stages | `#train.layout<nhwc>`, train.reorder | functions | an error: there are halves, or stages |
// | quantize-frozen | `train.quantized`; the backward half, layouts, no stages | forms of variables, train.quantized_matmul, train.dequantize, train.cast | functions | an error: there are stages |
// | assign-precision | layouts, no stages | bf16 or f16 tensors, train.cast | functions | an error: there are stages |
// | pad-products (cuda, 16 bits) | train.cast of weights, no stages | products of whole rows of 128 bytes, `classes` of losses | functions | an error: there are stages |
// | join-losses (cuda) | losses and their gradients with the `classes` that pad-products gives them, no stages | train.loss_and_gradient | functions | an error: there are stages |
// | linearize | final types: what works in place has one type | `train.stage`, `train.in_place`, pieces | functions | an error of the three passes above, which would change types |
// | estimate-cost | kernels; storages as linearize leaves them | `train.cost`, `train.algorithm`, `train.engines` | functions | an error: the op has no kernel |
// | home-variables (--state-home, --parameter-home, --shard=parameters) | updates, `train.cost` | variables with a home or `train.whole`, and what brings them around the ops that read them | functions | no error: variables stay where it did not run |
// | plan-memory | `train.cost`, `train.stage`: an op without takes no time | `train.plan`, `train.lossy` | functions: @evaluate by `keep` | an error where ops have no kernels; none where they have no costs |
// | apply-plan | `train.plan` of just these ops | memory ops, clones, `train.offsets` | functions | an error: no plan, or a storage or op of it that is not there |
// | schedule-streams | kernels; `train.in_place`, without which there are more bytes | a sched.program for each function, which stays as `NAME.planned` | functions | an error: the op has no kernel |
// | group-launches | programs that are placed afterwards | `sched.together`; transients without offsets | programs | an error of verify-schedule (V1, V7) |
// | assign-slots | programs | offsets, lives, sizes of the arenas | programs | an error where the plan's offsets do not fit |
// | verify-schedule | placed programs and their planned functions | what it found, proved | programs | an error: the program is not placed |
#ifndef SLUICE_PASSES
#define SLUICE_PASSES

include "mlir/Pass/PassBase.td"

def Recompose : Pass<"sluice-recompose", "::mlir::ModuleOp"> {
  let summary = "what exports write out as several ops becomes one";
  let description = [{
    Ops that change nothing fold away: reshapes to the same shape, joins of one, slices of a whole dimension or of a part of a join, transposes that undo each
    other, and those whose results nobody reads. Then:

    1. x/2 * (1 + erf(x/sqrt(2))) becomes train.gelu, and so does its form by tanh, whatever the order of factors and powers, where nobody else
       reads what lies after erf or tanh. Its gradient reads x alone, while those of the parts read three tensors.
    2. softmax(scale * q k^T + mask) v becomes train.attention, with its causal mask if it has one, its dropout, and the guard that exporters put around
       rows that see no key, where nobody else reads what lies between and no parameter takes part in the masks: any that are added or subtracted, and
       any numbers in place of scores, which have no gradient then. A triangle of finite numbers is a causal mask where nothing else can hide what it
       leaves. Scales may stand on q, on k, after the product or after a mask, keys and values may come transposed.
    3. (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias over the last dimension becomes train.layer_norm, with its factors in any order.
    4. A product reads a factor that is a transposed matrix as it was before, as PyTorch's linear layers need for their weights.
    5. A transpose of rows goes if only products with one matrix and sums with one row lie between it and another transpose or attention's own
        order.
    6. Attention reads queries, keys and values where a projection wrote them, through the reshapes, transposes and slices that exporters put between
       (#train.view), where its views cover each tensor exactly once, so that the gradient goes back the same way; and it writes its result as
       the transpose after it would. Batch and heads that were joined to one dimension are taken apart for that. Queries, keys and values of one packed projection then have one gradient, which no op concatenates.
    7. A row that a sum adds to a product with one matrix, or to a reshape of the product's rows, becomes the product's bias.

    Constants that nobody reads any longer go.

    ```mlir
    %a = train.div %x, %sqrt2 : ...
    %b = train.erf %a : ...
    %c = train.add %b, %one : ...
    %d = train.mul %x, %c : ...
    %y = train.scale %d {factor = 5.0e-1 : f32} : ...
    ```
    becomes
    ```mlir
    %y = train.gelu %x : ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"gelus", "gelus", "train.gelu made">, Statistic<"attentions", "attentions", "train.attention made">,
    Statistic<"norms", "norms", "train.layer_norm made">, Statistic<"products", "products", "factors read without their transpose">,
    Statistic<"biases", "biases", "sums that became a product's bias">, Statistic<"transposes", "transposes", "transposes of rows that went">, Statistic<"views", "views", "attentions that read or write through views">];
}

def BuildDecode : Pass<"sluice-build-decode", "::mlir::ModuleOp"> {
  let summary = "make a function that computes one token of each text, from keys and values that evaluations leave";
  let description = [{
    For --kv-cache: from the first scores [texts, tokens, words] of the largest @evaluate back, each value that depends on an input [texts, tokens] is made for one token of each text in @decode (`train.decode`).

    - Elementwise ops, products with weights, norms and softmax along other dimensions, tables of rows, and what moves elements are cloned with one token.
    - What depends on no text, positions and masks, is read at the places of the tokens, @"train/places", by train.embedding, as far up as only elementwise ops follow.
    - A train.attention becomes a train.cached_attention: the token's keys and values join two caches by train.cache_rows, which all evaluations do with those of all tokens, of heads that
      share them once. What lies behind a place is never read, so that the model has to be causal. An input that masks read for all tokens at once has a cache of its own.
    - Where anything else mixes tokens there is no @decode: a remark names the op.

    ```mlir
    %y, %sums = train.attention %q, %k, %v {causal = true, scale = 1.0 : f32} : (tensor<2x4x8x16xf32>, ...
    ```
    gets beside it `train.cache_rows %k, %c : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> ...`, another one for %v, and becomes in @decode
    ```mlir
    %c2 = train.cache_rows %k, %places, %c : (tensor<2x4x1x16xf32>, tensor<2xi64>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    %y = train.cached_attention %q, %c2, %d2, %places {scale = 1.0 : f32} : (tensor<2x4x1x16xf32>, ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"cached", "cached", "attentions whose keys and values are cached">];
}

def BuildBackward : Pass<"sluice-build-backward", "::mlir::ModuleOp"> {
  let summary = "append gradient and update ops to the forward part of @step";
  let description = [{
    Walks the forward ops backwards and lets each Differentiable op build its gradient ops. Several contributions to one value are added in
    the order in which they arrive. A parameter's update follows as soon as no later op reads the parameter, so that gradients do not all
    live at once. Optimizer state becomes variables named after their parameter (of sgd `<name>/momentum`, of adam and adamw `/exp_avg` and
    `/exp_avg_sq`, as PyTorch has them), as the module attribute `train.optimizer` asks. Three flags on the module and its precision change the updates:
    with `train.accumulate` a variable (`<name>/gradient_sum`) takes the mean of the step's batches; with `train.clip_norm` all updates wait for the norm
    of all gradients; with `train.precision = "fp16"` they wait for train.check_gradients, as norms do, and the loss's gradient is its scale instead of one; with
    `train.average` each parameter has a running average (`<name>/ema`), which all functions but @step read. Forward ops get `train.forward`, their ordinal, and all others `train.backward`, the ordinal of
    their forward op. Parameters that do not reach the loss get no update.

    ```mlir
    %y = train.matmul %x, %w {transpose_b = true} : ...
    %loss = train.mse %y, %target : ...
    return %loss
    ```
    becomes
    ```mlir
    %y = train.matmul %x, %w {train.forward = 0, transpose_b = true} : ...
    %loss = train.mse %y, %target {train.forward = 1} : ...
    %dy = train.loss_backward mse %y, %target {train.backward = 1} : ...
    %dw = train.matmul %dy, %x {train.backward = 0, transpose_a = true} : ...
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) : ...
    return %loss
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"gradientOps", "gradient-ops", "ops of the backward part">];
}

include "passes/SplitPasses.td"

def ReduceGradients : Pass<"sluice-reduce-gradients", "::mlir::ModuleOp"> {
  let summary = "sum gradients and statistics over all ranks, where the module is for several";
  let description = [{ With the module attribute `train.ranks` ("ordered" or "fast"), in @step: what an update, a norm or a check reads is summed over all ranks first (train.all_reduce), gradients that follow one another in one op, as many as fit a megabyte; readers come behind the next
    such op; the mean over a step's batches becomes a rank's part of that sum, of `train.sums` digits (train.sum_batches); running statistics take what all batches of all ranks add to them. With `train.gradient_shares` each rank gets the share of the sums that it updates (train.reduce_scatter, train.shares_norm). With `train.shares` parameters are gathered at the end of the step (train.all_gather), with `train.parameter_shares` but vectors and those below 4 KiB are not, see home-variables.
    ```mlir
    %all:2 = train.all_reduce %dw, %db {mean, ordered, weighted} : ... // then train.update(%all#0, ...) in place of train.update(%dw, ...), further down
    ``` }];
  let dependentDialects = ["::sluice::train::TrainDialect"]; let statistics = [Statistic<"reductions", "reductions", "sums over all ranks">];
}

def FuseEpilogues : Pass<"sluice-fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "let convolutions and matrix products compute what ops beside them ask of their results";
  let description = [{
    For cuda, and does nothing unless `train.precision` is "bf16" or "fp16".

    1. train.conv and the statistics of the train.batch_norm that reads its result become train.conv_statistics.
    2. train.conv_backward_data becomes train.conv_backward_norm with the other gradient that is added to its result, if there is one, the gradient of ReLU
       after them, and the channel sums of the gradient of the train.batch_norm in front of that, where nobody else reads what lies between.

    3. train.matmul that makes the gradient of a train.gelu by tanh, and that gradient, become train.matmul_gelu_backward, in bf16 with the sum over its rows
       that is a bias's gradient.
    4. train.matmul, with its bias, and the train.gelu by tanh of it become train.matmul_gelu where such a gradient reads its result.

    What is left of BatchNorm becomes train.normalize and train.normalize_backward. 1 and 2, with `convolutions`, apply to memory-bound 1x1 convolutions over images with one group and channels divisible by 8,
    2 with strides of 1: those that cuDNN has such kernels for. 3 and 4, with `products`, apply to matrices with rows of a multiple of 8, reshapes between them and Gelu or not: those that cuBLASLt takes.
    Never depends on a plan or a budget: all plans have one program's bits, and what computes Gelu again is its product with the same epilogue.

    ```mlir
    %y = train.conv %x, %w ... : ...
    %z, %mean, %rstd = train.batch_norm %y, %scale, %bias {epsilon = 1.0e-5 : f32} : ...
    ```
    becomes
    ```mlir
    %y, %mean, %rstd = train.conv_statistics %x, %w {epsilon = 1.0e-5 : f32, ...} : ...
    %z = train.normalize %y, %mean, %rstd, %scale, %bias : ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"convolutions", "convolutions", "bool", "true", "those beside BatchNorm">,
    Option<"products", "products", "bool", "true", "those beside Gelu">];
  let statistics = [Statistic<"statisticsMade", "statistics", "convolutions with statistics">,
    Statistic<"gradientsMade", "gradients", "convolutions' gradients with sums">,
    Statistic<"gelusMade", "gelus", "products with Gelu">, Statistic<"slopesMade", "slopes", "products with Gelu's slope">];
}

def Fuse : Pass<"sluice-fuse", "::mlir::ModuleOp"> {
  let summary = "gather elementwise ops into train.fused regions";
  let description = [{
    1. train.batch_norm becomes statistics and train.normalize; its backward op becomes train.normalize_reduce and train.normalize_backward.
    2. Every elementwise op becomes a train.fused of its own.
       With `rows` train.layer_norm_backward becomes a region that takes means of its rows (train.row_mean), regions of gradients that stand beside matrices
       run over matrices, and train.sum_to over the rows of what such a region makes becomes a region of a sum.
    3. A fused op sinks into a later one that reads its result when both run over the same shape, everything else that reads its results
       comes later still, and no more bytes become live for longer than the sunk results save. One that may not sink is repeated inside the
       later one where that reads all full-size operands of the result anyway, other results of the op among them: the gradient of BatchNorm and
       ReLU sees the sign of what ReLU gave in what BatchNorm read. If nobody else reads the result, the repetition may read one operand more.
       Not with `repeat=false`, for plans that may bring operands back inexactly: they must take such signs from the exact original.
       With `rows` a region that takes means of rows then makes the sums of LayerNorm's parameters as well, in their place.
    Never depends on a plan or a budget. The arithmetic of each element stays as it was: grouping changes no bit.

    ```mlir
    %n = train.normalize %x, %mean, %rstd, %scale, %bias : ...
    %y = train.relu %n : ...
    ```
    becomes
    ```mlir
    %y = train.fused (%x, %mean, %rstd, %scale, %bias : ...) channels [1, 2, 3, 4] sums 0 -> (tensor<8x4x2x2xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32):
      %0 = arith.subf %a, %b : f32
      ...
      train.yield %4 : f32
    }
    ```
  }];
  let options = [Option<"repeat", "repeat", "bool", "true", "let later ops repeat earlier ones">,
    Option<"rows", "rows", "bool", "false", "regions may take means of their rows and sum over them, as kernels on cuda can">];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"regions", "regions", "fused regions left">, Statistic<"merged", "merged", "ops sunk into another">,
    Statistic<"repeated", "repeated", "results that a later op computes again">];
}

def AssignLayouts : Pass<"sluice-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "give images the NHWC layout and insert train.reorder where order matters";
  let description = [{
    Each op says what it wants (LayoutAware): ChannelsLast ops take and give NHWC, Follow ops keep what their full-shape operands have,
    all others are row-major. An operand of another layout goes through a train.reorder, which is free where both orders coincide.
    Images have one to three spatial dimensions; a reshape from one such rank to another that keeps batch and channels is a view in either order.

    ```mlir
    %y = train.conv %x, %w ... : (tensor<8x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32>
    %f = train.reshape %y : (tensor<8x4x6x6xf32>) -> tensor<8x144xf32>
    ```
    becomes
    ```mlir
    %y = train.conv %x, %w ... : (tensor<8x3x8x8xf32, #train.layout<nhwc>>, tensor<4x3x3x3xf32>) -> tensor<8x4x6x6xf32, #train.layout<nhwc>>
    %r = train.reorder %y : (tensor<8x4x6x6xf32, #train.layout<nhwc>>) -> tensor<8x4x6x6xf32>
    %f = train.reshape %r : (tensor<8x4x6x6xf32>) -> tensor<8x144xf32>
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"reorders", "reorders", "layout changes that move data">];
}

def QuantizeFrozen : Pass<"sluice-quantize-frozen", "::mlir::ModuleOp"> {
  let summary = "hold weights that are fixed in fewer bits, and bring their floats back where they are used";
  let description = [{
    For variables with `train.quantized` (--frozen), which become that form: bytes, or bf16. On the host a train.matmul whose right factor one is becomes a train.quantized_matmul.
    Any other op that reads one gets its floats from a train.dequantize, or a train.cast, right in front of it, with the op's ordinal: those of one matrix at a time live, for one op.
    A train.embedding becomes a train.dequantize of its rows. assign-precision then makes the floats in 16 bits where products read such.

    ```mlir
    train.variable @w role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>}
    %y = train.matmul %x, %w {train.forward = 0 : i64} : ...
    ```
    becomes, with `target=cuda`,
    ```mlir
    %q = train.read @w : tensor<4352xi8>
    %w = train.dequantize %q {form = #train.quantized<[64, 64] bits 8 group 64 along 0>, train.forward = 0 : i64} : ...
    ```
  }];
  let options = [Option<"target", "target", "Target", "Target::Host", "host or cuda: whose kernels take forms", "TargetWords()">];
  let statistics = [Statistic<"quantized", "quantized", "variables in fewer bits">, Statistic<"uses", "uses", "ops that bring floats back">];
}

def AssignPrecision : Pass<"sluice-assign-precision", "::mlir::ModuleOp"> {
  let summary = "store in bf16 or f16 what convolutions and matrix products read, as `train.precision` of the module asks";
  let description = [{
    Mixed precision: kernels compute in f32, products on tensor cores with f32 sums, and tensors are rounded where they are stored. Does
    nothing unless `train.precision` is "bf16", of which the following speaks, or "fp16", which makes f16 of the same. Each op says what it can take (PrecisionAware).

    - Factors of products are bf16; parameters, their gradients and updates, statistics, sums and losses are f32.
    - A product's result is bf16, but a matrix product's that leads to no other product, such as a weight gradient, stays f32. Logits whose cross-entropy has a gradient lead to those that
      read it.
    - Any other result is bf16 where an operand is and a product reads it, directly or through ops that take any type. What comes after
      the last product, where losses are made, thus stays f32.
    - A tensor of the other type goes through a train.cast in front of its first reader, which later ones share, the backward half included:
      a weight is rounded once a step. Convolution weights are brought into their engines' order with it.
    - Where a convolution of one group reads an image of fewer channels than `fewest-channels` through such a cast, image and weights get that many there, zeros
      in the new ones, and train.slice takes the weights' own out of their gradient: engines on tensor cores, which read 8 at a time, would copy the whole batch so
      into their workspace, forward and backward. For the host it is 1.
    - With `turns-gradients` the gradient of a convolution's weights is bf16 in NHWC order, and a train.cast makes f32 of it: runs that group-launches brings
      together. cuDNN's engines leave it so, and a kernel of its own for each would take the time of a launch. Not where channels were added.

    ```mlir
    %w = train.read @w : tensor<10x36xf32>
    %y = train.matmul %x, %w {transpose_b = true} : (tensor<8x36xbf16>, tensor<10x36xf32>) -> tensor<8x10xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<8x10xf32>, tensor<8xi64>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %w = train.read @w : tensor<10x36xf32>
    %h = train.cast %w : (tensor<10x36xf32>) -> tensor<10x36xbf16>
    %y = train.matmul %x, %h {transpose_b = true} : (tensor<8x36xbf16>, tensor<10x36xbf16>) -> tensor<8x10xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<8x10xf32>, tensor<8xi64>) -> tensor<f32>
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"fewestChannels", "fewest-channels", "int64_t", "8", "channels that convolutions of halves read of an image without a copy of it">,
    Option<"turnsGradients", "turns-gradients", "bool", "false", "gradients of convolutions' weights are turned by ops of their own, as cuda's engines leave them">];
  let statistics = [Statistic<"casts", "casts", "changes of element type">, Statistic<"narrowed", "narrowed", "results stored in 16 bits">];
}

def PadProducts : Pass<"sluice-pad-products", "::mlir::ModuleOp"> {
  let summary = "give products of 16 bits whose columns are odd in number, as those of vocabularies are, some more of zeros";
  let description = [{
    For cuda, where a row of halves that is no multiple of 16 bytes keeps cuBLASLt from the kernels that load so many at once: with 50257 words the three products of
    GPT-2's head take 26.6, 18.0 and 16.8 ms on an H200, with 50264 they take 3.8, 3.3 and 3.4 (32 x 1024 tokens, bf16).

    A product of a variable that a train.cast rounds has `fewest` columns or more, and no multiple of 8 of them. It gets the next multiple of `multiple`, 64 by default: then rows of halves
    and of floats begin where lines of the cache do, at multiples of 128 bytes, and what has the columns grows by an eighth at most, by a thousandth for GPT-2.
    All that has these columns grows with it, where nobody sees the new ones:

    - the cast writes zeros in the weights' new rows or columns, and a row that is added grows by its cast or by a train.pad_slab;
    - cross-entropies and train.count_correct read the first `classes` logits, and their gradient has zeros behind them;
    - elementwise ops between them run over all; what they make of a gradient is 0 where it is, or nothing is padded;
    - a product over the columns sums the zeros of both factors; the gradients of weights and row are cut by a train.slice.

    Logits that anything else reads, or that the function returns, stay as they are: so do those of @evaluate whose scores can be predicted.

    ```mlir
    %h = train.cast %w : (tensor<521x32xf32>) -> tensor<521x32xbf16>
    %y = train.matmul %x, %h {transpose_b = true} : (tensor<64x32xbf16>, tensor<521x32xbf16>) -> tensor<64x521xf32>
    %loss = train.softmax_cross_entropy %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<f32>
    %dy = train.loss_backward softmax_cross_entropy %y, %target : (tensor<64x521xf32>, tensor<64xi64>) -> tensor<64x521xbf16>
    %dw = train.matmul %dy, %x {transpose_a = true} : (tensor<64x521xbf16>, tensor<64x32xbf16>) -> tensor<521x32xf32>
    ```
    becomes
    ```mlir
    %h = train.cast %w : (tensor<521x32xf32>) -> tensor<576x32xbf16>
    %y = train.matmul %x, %h {transpose_b = true} : (tensor<64x32xbf16>, tensor<576x32xbf16>) -> tensor<64x576xf32>
    %loss = train.softmax_cross_entropy %y, %target {classes = 521 : i64} : (tensor<64x576xf32>, tensor<64xi64>) -> tensor<f32>
    %dy = train.loss_backward softmax_cross_entropy %y, %target {classes = 521 : i64} : (tensor<64x576xf32>, tensor<64xi64>) -> tensor<64x576xbf16>
    %all = train.matmul %dy, %x {transpose_a = true} : (tensor<64x576xbf16>, tensor<64x32xbf16>) -> tensor<576x32xf32>
    %dw = train.slice %all {axis = 0 : i64, length = 521 : i64, start = 0 : i64} : (tensor<576x32xf32>) -> tensor<521x32xf32>
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"multiple", "multiple", "int64_t", "64", "columns get a multiple of this; 1: nothing is padded">,
    Option<"fewest", "fewest", "int64_t", "512", "fewest columns of products that are worth it">];
  let statistics = [Statistic<"padded", "padded", "products with more columns">];
}

def JoinLosses : Pass<"sluice-join-losses", "::mlir::ModuleOp"> {
  let summary = "compute a cross-entropy where its gradient is, by one kernel";
  let description = [{
    For cuda, where a loss waits for the memory that its logits come from: 50304 columns of 32 x 1024 tokens in bf16 are 3.3 GB, which the loss reads, and its gradient once more.

    train.softmax_cross_entropy and the first train.loss_backward of the same logits and targets behind it become train.loss_and_gradient there, where
    whatever reads the loss comes later still. Losses without a gradient stay, as those of @evaluate. Never depends on a plan or a budget, and changes no bit.

    ```mlir
    %loss = train.softmax_cross_entropy %y, %target : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<f32>
    %dy = train.loss_backward softmax_cross_entropy %y, %target : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<16x10xf32>
    ```
    becomes
    ```mlir
    %dy, %loss = train.loss_and_gradient %y, %target : (tensor<16x10xf32>, tensor<16xi64>) -> (tensor<16x10xf32>, tensor<f32>)
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"joined", "joined", "losses computed with their gradients">];
}

include "passes/SchedulePasses.td"

#endif
