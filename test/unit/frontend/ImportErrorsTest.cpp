// SPDX-License-Identifier: Apache-2.0
// Errors name node, op type and opset, and both sides of a conflict.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>
#include <limits>

namespace sluice {
namespace {

using testing::HasSubstr;

std::string errorOf(const std::string &graph, const TrainingSpec &spec = {}, int opset = 17) {
  auto proto = parseModel(graph, opset);
  addInitializer(proto, "w", {4, 3});
  addInitializer(proto, "k", {4, 3, 3, 3});
  addInitializer(proto, "v", {5});
  ImportedModel model(proto, spec);
  EXPECT_EQ(model.error.find('\n'), std::string::npos);
  return model.error;
}

TEST(ImportErrors, UnknownOp) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { y = EyeLike(x) }"),
              HasSubstr("model.onnx: node 'y' (EyeLike, opset 17): this op is not supported"));
}

TEST(ImportErrors, WeightsOfAnotherRankBeforeAnInlinedOp) {
  for (const char *convolution :
       {"ConvTranspose(x, w)", "ConvTranspose(x, v)", "ConvTranspose(x, k)", "Conv(x, w)", "Conv(x, k)", "Conv(x, v)"})
    EXPECT_THAT(errorOf("g (float[2, 4, 8] x) => (float[2, 4, 8] y) { h = " + std::string(convolution) +
                            " y = GroupNormalization<num_groups = 1>(h, v, v) }",
                        {}, 21),
                HasSubstr("(Conv"));
  EXPECT_THAT(
      errorOf(
          "g (float[2] x) => (float[2] y) { h = ConvTranspose(x, v) y = GroupNormalization<num_groups = 1>(h, v, v) }",
          {}, 21),
      HasSubstr("(ConvTranspose"));
}

TEST(ImportErrors, LayerNormalization) {
  auto proto = parseModel("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = LayerNormalization<axis = 1>(x, scale) }");
  addInitializer(proto, "scale", {4});
  EXPECT_THAT(ImportedModel(proto).error,
              HasSubstr("(LayerNormalization, opset 17): normalizes the dimensions [3, 4] of an input of "
                        "shape [2, 3, 4] but has a scale or bias of shape [4]; they must be equal"));
  EXPECT_THAT(errorOf("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = LayerNormalization<axis = 3>(x, x) }"),
              HasSubstr("axis"));
  EXPECT_THAT(errorOf("g (float[2, 4] x) => (float[2, 4] y) { y = Gelu<approximate = \"fast\">(x) }", {}, 20),
              HasSubstr("approximate is 'fast', must be none or tanh"));
}

TEST(ImportErrors, TheMaskOfADropoutThatDraws) {
  EXPECT_THAT(errorOf("g (float[2, 5] x) => (float[2, 5] y) { r = Constant<value = float {0.5}>() "
                      "t = Constant<value = int64 {1}>() b = Cast<to = 9>(t) h, mask = Dropout(x, r, b) "
                      "m = Cast<to = 1>(mask) y = Mul(h, m) }"),
              HasSubstr("(Cast, opset 17): reads 'mask', an optional output that is not supported"));
}

TEST(ImportErrors, ClipBoundsAreNumbers) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 4] y) { h = Clip(x, low) y = Gemm<transB = 1>(h, w) }");
  addInitializer(proto, "w", {4, 3});
  addInitializer(proto, "low", {}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(ImportedModel(proto).error, HasSubstr("(Clip, opset 17): bound 'min' is NaN; it must be a number"));
}

TEST(ImportErrors, OpenDimensions) {
  EXPECT_THAT(errorOf("g (float[N, 3] x) => (float[N, 4] y) { y = Gemm<transB = 1>(x, w) }"),
              HasSubstr("input 'x' leaves dimension 0 ('N') open; fix it with --batch=N or --dim N=N"));
  EXPECT_THAT(errorOf("g (float[N, C, 3] x, float[N, T] z) => (float[2, 3] y) { y = Relu(x) s = Relu(z) }"),
              HasSubstr("input 'x' leaves dimension 0 ('N') open; input 'x' leaves dimension 1 ('C') open; fix them "
                        "with --batch=N or --dim N=N and --dim C=N"));
  TrainingSpec spec;
  spec.batch = 2;
  EXPECT_THAT(errorOf("g (float[N, C] x) => (float[N, 4] y) { y = Gemm<transB = 1>(x, w) }", spec),
              HasSubstr("input 'x' leaves dimension 1 ('C') open; fix it with --dim C=N"));
  spec.dims = {{"D", 3}};
  EXPECT_THAT(errorOf("g (float[N, 3] x) => (float[N, 4] y) { y = Gemm<transB = 1>(x, w) }", spec),
              HasSubstr("--dim D=3 names no open dimension of an input; there are: N"));
}

TEST(ImportErrors, ShapesThatConflict) {
  EXPECT_THAT(errorOf("g (float[2, 5, 8, 8] x) => (float[2, 4, 6, 6] y) { y = Conv(x, k) }"),
              HasSubstr("node 'y' (Conv, opset 17): has 5 input channels but weights for 3 in each of 1 groups"));
  EXPECT_THAT(errorOf("g (float[2, 5] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, w) }"),
              HasSubstr("inner extents 5 and 3"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, v) }"), HasSubstr("do not broadcast"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 9] y) { y = Gemm<transB = 1>(x, w) }"),
              HasSubstr("output 'y' is declared as [2, 9] but the graph computes [2, 4]"));
  EXPECT_THAT(errorOf("g (float[2, 3, 2, 2] x) => (float[2, 4, 1, 1] y) { y = Conv(x, k) }"),
              HasSubstr("does not fit"));
}

TEST(ImportErrors, ElementTypes) {
  EXPECT_THAT(errorOf("g (int8[2, 3] x) => (int8[2, 3] y) { y = Relu(x) }"),
              HasSubstr("input 'x' has element type int8; supported are float32, int64, int32, uint8 and bool"));
}

TEST(ImportErrors, SizesThatOverflow) {
  EXPECT_THAT(errorOf("g (float[4611686018427387904, 3] x) => (float[2, 3] y) { y = Relu(x) }"),
              HasSubstr("too large to address"));
  EXPECT_THAT(errorOf(R"(g (float[65536, 65536] x) => (float[1] y) {
    a = Unsqueeze<axes = [2, 3]>(x)
    b = Unsqueeze<axes = [0, 1]>(x)
    y = Add(a, b) })",
                      {}, 11),
              HasSubstr("its result of shape [65536, 65536, 65536, 65536] is too large to address"));
  // Ops that importers make with a type of their own are held to the same limits.
  EXPECT_THAT(errorOf("g (float[2, 1] x) => (float[2, 3] y) { s = Constant<value_ints = [2, 2305843009213693952]>() y "
                      "= Expand(x, s) }"),
              HasSubstr("node 'y' (Expand, opset 17): its result of shape [2, 2305843009213693952] has "
                        "4611686018427387904 elements, more than the limit of 1099511627776"));
  EXPECT_THAT(
      errorOf("g (float[2, 1] x) => (float[2, 3] y) { s = Constant<value_ints = [2, 4294967296]>() y = Expand(x, s) }"),
      HasSubstr("has an extent of 4294967296, more than the limit of 2147483647"));
  EXPECT_THAT(
      errorOf("g (float[2, 4294967296] x) => (float[2, 3] y) { y = Relu(x) }"),
      HasSubstr("input 'x' of shape [2, 4294967296] has an extent of 4294967296, more than the limit of 2147483647"));
}

TEST(ImportErrors, RanksThatTheRuntimeCannotHold) {
  const std::string why = "has rank 7, more than the limit of 6";
  EXPECT_THAT(errorOf("g (float[2, 1, 1, 1, 1, 1, 3] x) => (float[2, 3] y) { y = Relu(x) }"),
              HasSubstr("input 'x' " + why));
  for (const char *op : {"Reshape(x, s)", "Expand(x, s)"})
    EXPECT_THAT(
        errorOf(std::string(
                    "g (float[2, 3] x) => (float[2, 3] y) { s = Constant<value_ints = [1, 1, 1, 1, 1, 2, 3]>() y = ") +
                op + " }"),
        HasSubstr("its result " + why));
  EXPECT_THAT(
      errorOf(
          "g (float[2, 3] x) => (float[2, 3] y) { s = Constant<value_ints = [0, 1, 2, 3, 4]>() y = Unsqueeze(x, s) }"),
      HasSubstr("its result " + why));
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, seven) }");
  addInitializer(proto, "seven", {1, 1, 1, 1, 1, 2, 3});
  EXPECT_THAT(ImportedModel(proto).error, HasSubstr("tensor 'seven' " + why));
  auto state =
      parseModel("g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) { y = BatchNormalization(x, s, s, seven, s) }");
  addInitializer(state, "s", {3});
  addInitializer(state, "seven", {1, 1, 1, 1, 1, 1, 3});
  EXPECT_THAT(ImportedModel(state).error, HasSubstr("tensor 'seven' " + why));
}

TEST(ImportErrors, LimitsOfTheCommandLine) {
  TrainingSpec spec;
  ASSERT_TRUE(parseLimit("extent=3", spec.limits));
  EXPECT_THAT(errorOf("g (float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }", spec),
              HasSubstr("has an extent of 4, more than the limit of 3; raise it with --limit extent=N"));
  spec.limits = {};
  ASSERT_TRUE(parseLimit("constant-bytes=20", spec.limits));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { s = Shape(x) t = Abs(s) y = Reshape(x, t) }", spec),
              HasSubstr("together has 32 bytes, more than the limit of 20; raise it with --limit constant-bytes=N"));
  EXPECT_EQ(parseLimit("rank=7", spec.limits).error(), "--limit rank=7 cannot be raised above 6");
  for (const char *word : {"nodes", "nodes=", "nodes=0", "nodes=-1", "nodes=3x", "mode=3", "=3", ""})
    EXPECT_FALSE(parseLimit(word, spec.limits)) << word;
}

/// Windows that are larger than the image read nothing there, but kernels walk over them.
TEST(ImportErrors, WindowsThatNeverEnd) {
  for (const char *op : {"MaxPool", "AveragePool"})
    EXPECT_THAT(
        errorOf(std::string("g (float[2, 3, 8, 8] x) => (float[2, 3, 9, 9] y) { y = ") + op +
                "<kernel_shape = [1073741824, 1073741824], pads = [536870912, 536870912, 536870912, 536870912]>(x) }"),
        HasSubstr(
            "windows of [1073741824, 1073741824] for a result of [2, 3, 9, 9] read more than 1099511627776 times"));
  EXPECT_THAT(
      errorOf("g (float[2, 3, 8] x) => (float[2, 3, 9] y) { y = AveragePool<kernel_shape = [1073741824], pads = "
              "[536870912, 536870912]>(x) }"),
      HasSubstr(
          "windows of [1, 1073741824] for a result of [2, 3, 1, 9] read more than 4294967296 times outside the image"));
  EXPECT_EQ(errorOf("g (float[64, 32, 1, 1] x) => (float[64, 32, 1, 1] y) { y = MaxPool<kernel_shape = [3, 3], "
                    "auto_pad = \"SAME_UPPER\">(x) }"),
            "");
}

/// GroupNormalization makes the ONNX library infer all shapes of the graph.
TEST(ImportErrors, DivisorsOfTheLibrarysShapeInference) {
  const std::string convolution = "Conv<strides = [0, 3], auto_pad = \"SAME_LOWER\">(x, k)";
  for (const std::string &op : {convolution, std::string("MaxPool<kernel_shape = [3, 3], strides = [1, 0]>(x)"),
                                std::string("AveragePool<kernel_shape = [3, 3], strides = [0, 0]>(x)")})
    EXPECT_THAT(errorOf("g (float[2, 3, 8, 8] x) => (float[2, 3, 8, 8] y) { h = " + op +
                            " y = GroupNormalization<num_groups = 1>(h, v, v) }",
                        {}, 21),
                HasSubstr("strides holds 0"));
  EXPECT_THAT(errorOf("g (float[2, 4, 8, 8] x) => (float[2, 4, 8, 8] y) { h = DepthToSpace<blocksize = 4294967296>(x) "
                      "y = GroupNormalization<num_groups = 1>(h, v, v) }",
                      {}, 21),
              HasSubstr("block size 4294967296 does not fit shape [2, 4, 8, 8]"));
}

TEST(ImportErrors, NormalizationsOverTooManyChannels) {
  EXPECT_THAT(errorOf("g (float[1, 2097152, 1, 1] x) => (float[1, 2097152, 1, 1] y) { y = LRN<size = 2147483647>(x) }"),
              HasSubstr("sums over 2097152 channels for each of 2097152 elements read more than 1099511627776 times"));
}

TEST(ImportErrors, OneTensorAsMeanAndVariance) {
  auto proto = parseModel("g (float[2, 4, 8, 8] x) => (float[2, 4, 8, 8] y) { y = BatchNormalization(x, s, b, m, m) }");
  for (const char *name : {"s", "b", "m"})
    addInitializer(proto, name, {4});
  EXPECT_THAT(ImportedModel(proto, {}).error, HasSubstr("has the tensor 'm' both as its mean and as its variance"));
}

/// The place of a maximum in its window has 32 bits.
TEST(ImportErrors, WindowsWithMorePositionsThanKernelsTellApart) {
  EXPECT_THAT(errorOf("g (float[1, 1, 65536, 32768] x) => (float[1, 1, 1, 1] y) { y = GlobalMaxPool(x) }"),
              HasSubstr("windows of [65536, 32768] have 2147483648 positions, kernels tell 2147483647 apart"));
}

/// Each number is within its limit, but oneDNN divided by zero or took gigabytes for the first two.
TEST(ImportErrors, ConvolutionsOfExtentsThatKernelsDoNotHold) {
  auto proto =
      parseModel("g (float[1, 1, 2147483646] x) => (float[1, 1, 2147483646] y) { y = Conv<pads = [1, 1]>(x, w) }");
  addInitializer(proto, "w", {1, 1, 3});
  EXPECT_THAT(ImportedModel(proto, {}).error,
              HasSubstr("has an image of [1, 1, 2147483646], whose extent of 2147483646 is more than the 16777216"));
  proto = parseModel(
      "g (float[1, 1, 1, 2] x) => (float[1, 1, 3, 20000003] y) { y = ConvTranspose<strides = [1, 20000000]>(x, w) }");
  addInitializer(proto, "w", {1, 1, 3, 3});
  EXPECT_THAT(ImportedModel(proto, {}).error,
              HasSubstr("has a result of [1, 3, 20000003], whose extent of 20000003 is more than the 16777216"));
  proto = parseModel(
      "g (float[20000000, 1, 4, 4] x) => (float[20000000, 1, 2, 2] y) { y = Conv(x, w) }"); // any number of images
  addInitializer(proto, "w", {1, 1, 3, 3});
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  EXPECT_EQ(ImportedModel(proto, spec).error, "");
}

TEST(ImportErrors, OperandsOfOtherRanks) {
  auto proto = parseModel("g (float[2, 3, 8, 8] x) => (float[2, 4, 6, 6] y) { y = Conv(x, k, b) }");
  addInitializer(proto, "k", {4, 3, 3, 3});
  addInitializer(proto, "b", {});
  EXPECT_THAT(ImportedModel(proto).error, HasSubstr("convolution has 4 outputs but a bias 'tensor<f32>'"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float y) { n = Constant<value_floats = [2.0]>() z = ReduceSum<keepdims = "
                      "0>(x) y = Resize(z, , n) }"),
              HasSubstr("has 1 scales or sizes for 0 dimensions"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float y) { z = ReduceSum<keepdims = 0>(x) y = Transpose<perm = [0]>(z) }"),
              HasSubstr("no permutation of its dimensions"));
}

/// Nodes of another domain have neither the outputs nor the names that the standard's have.
TEST(ImportErrors, ViewsOfAForeignDomain) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 4] y) { h = Gemm<transB = 1>(x, w) y = Relu(h) }");
  addInitializer(proto, "w", {4, 3});
  auto *import = proto.add_opset_import();
  import->set_domain("foreign");
  import->set_version(1);
  onnx::NodeProto loop = proto.graph().node(0), blind = loop;
  loop.set_domain("foreign");
  loop.set_op_type("Identity");
  loop.clear_attribute();
  loop.clear_input();
  loop.add_input("");
  loop.add_input("w");
  loop.clear_output();
  loop.add_output("");
  loop.add_output("z");
  blind = loop;
  blind.set_input(0, "w");
  blind.clear_output();
  onnx::NodeProto relu = proto.graph().node(1);
  relu.add_input("z"); // live, so that all are looked at
  *proto.mutable_graph()->mutable_node(1) = loop;
  *proto.mutable_graph()->add_node() = blind;
  *proto.mutable_graph()->add_node() = relu;
  EXPECT_NE(ImportedModel(proto).error, "");
  // Chains of views that are longer than any exporter writes are not followed to their ends.
  std::string chain = "g (float[2, 3] x) => (float[2, 3] y) { a0 = Identity(v) ";
  for (int i = 0; i < 300; ++i)
    chain += "a" + std::to_string(i + 1) + " = Identity(a" + std::to_string(i) + ") ";
  auto views = parseModel(chain + "y = Mul(x, a300) }");
  addInitializer(views, "v", {3});
  EXPECT_EQ(ImportedModel(views).error, "");
}

TEST(ImportErrors, OptionalOutputs) {
  EXPECT_THAT(errorOf("g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) { p, i = MaxPool<kernel_shape = [1, 1]>(x) "
                      "j = Cast<to = 1>(i) y = Add(p, j) }"),
              HasSubstr("reads 'i', an optional output that is not supported"));
}

TEST(ImportErrors, ValuesThatMustBeKnown) {
  EXPECT_THAT(errorOf("g (float[2, 3] x, int64[2] s) => (float[3, 2] y) { y = Reshape(x, s) }"),
              HasSubstr("shape must be known at compile time; input 1 's' is not"));
}

TEST(ImportErrors, BatchesThatDataFilesCannotHold) {
  EXPECT_THAT(
      errorOf("g (float[2, 3] x, float[3] z) => (float[2, 3] y) { y = Add(x, z) }"),
      HasSubstr("input 'z' of shape [3] does not have, as dimension 0, the batch of 2 that 'x' has; --batch-dim "
                "z=K says which dimension counts the samples (from 0 on), --input z=shared that all samples "
                "have it in common, --batch-dim z=none that a sample is the whole input"));
  EXPECT_THAT(errorOf("g (float[7, 2, 3] x, float[1, 2, 3] z) => (float[7, 2, 3] y) { y = Add(x, z) }"),
              HasSubstr("; --batch-dim x=1 --batch-dim z=1 says which dimension"));
  EXPECT_THAT(errorOf("g (float[2, 3] x, float z) => (float[2, 3] y) { y = Add(x, z) }"),
              HasSubstr("input 'z' of shape [] has no dimension for samples; --input z=shared that"));
  EXPECT_THAT(errorOf("g (float[2, 3] target) => (float[2, 3] y) { y = Relu(target) }"),
              HasSubstr("input 'target' has the name of the attached loss's target"));
  EXPECT_THAT(
      errorOf("g (float[2, 3, 1] x) => (float[3, 2] y) { s = Constant<value_ints = [3, 2]>() y = Reshape(x, s) }"),
      HasSubstr("output 'y' has shape [3, 2], which does not begin with the batch of 2"));
}

TEST(ImportErrors, ConstantsOfTheWrongType) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[3] y) { i = Constant<value_floats = [1.0]>() y = Gather(x, i) }"),
              HasSubstr("indices 'i' must be integers: an input of the model, whose values are checked when data are "
                        "read, a constant, or computed from these"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[3] y) { i = Constant<value_floats = [1.0]>() y = Reshape(x, i) }"),
              HasSubstr("shape must be integers; input 1 'i' is not"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[3] y) { i = Constant<value_floats = [1.0]>() y = Squeeze(x, i) }"),
              HasSubstr("axes must be integers; input 1 'i' is not"));
}

TEST(ImportErrors, LabelsThatNobodyChecks) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  EXPECT_THAT(errorOf(R"(g (float[2, 3] x) => (float y) {
    l = Constant<value_ints = [0, 7]>()
    z = Gemm<transB = 1>(x, w)
    y = SoftmaxCrossEntropyLoss(z, l) })",
                      spec),
              HasSubstr("label 7 is none of the 4 classes"));
}

TEST(ImportErrors, Losses) {
  EXPECT_THAT(errorOf("g (float[3] x) => (float[3] y) { y = Relu(x) }"),
              HasSubstr("output 'y' has shape [3] but softmax-cross-entropy needs [batch, classes, ...]"));
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, w) }", spec),
              HasSubstr("is not a loss"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[4, 3] y) { y = Identity(w) }"), HasSubstr("depends on no input"));
}

TEST(TrainingSpec, RefusesUnknownWords) {
  EXPECT_EQ(parseLoss("hinge").error(),
            "--loss=hinge is unknown; use softmax-cross-entropy|token-cross-entropy|mse|bce-with-logits|ctc|none");
  EXPECT_EQ(checkPrecision("tf32", Target::Host).error(),
            "--precision=tf32 does not go with --target=host: it is a form of products on GPUs; use fp32 or bf16");
  EXPECT_TRUE(checkPrecision("bf16", Target::Host));
  EXPECT_EQ(
      checkPrecision("fp16", Target::Host).error(),
      "--precision=fp16 does not go with --target=host: oneDNN 2.6 has neither convolutions nor products of fp16, "
      "whatever the processor; use bf16, which is as small and needs no scale of the loss, or --target=cuda");
  EXPECT_EQ(checkPrecision("fp8", Target::Cuda).error(), "--precision=fp8 is unknown; use fp32, tf32, bf16 or fp16");
  EXPECT_TRUE(checkPrecision("fp16", Target::Cuda));
  EXPECT_TRUE(checkPrecision("bf16", Target::Cuda));
  TrainingSpec spec;
  EXPECT_FALSE(parseDim("N", spec));
  EXPECT_FALSE(parseDim("N=0", spec));
  EXPECT_TRUE(parseDim("a=b=3", spec));
  EXPECT_EQ(spec.dims.at("a=b"), 3);
}

} // namespace
} // namespace sluice
