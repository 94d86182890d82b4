// SPDX-License-Identifier: Apache-2.0
// What importers make of the forms in which exporters and opsets write the same op.
#include "ir/TensorName.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A graph that ends in `y`, [N, K] logits.
onnx::ModelProto withWeights(const std::string &graph, int opset = 17) {
  auto model = parseModel(graph, opset);
  addInitializer(model, "w", {4, 3}, 0.1f, 0.01f);
  addInitializer(model, "b", {4}, 0.2f);
  return model;
}

constexpr const char *linear = "g (float[N, 3] x) => (float[N, 4] y) { y = Gemm<transB = 1>(x, w, b) }";

TEST(Import, NamesArgumentsAndReturnsLossCountAndOutput) {
  TrainingSpec spec;
  spec.batch = 8;
  ImportedModel model(withWeights(linear), spec);
  ASSERT_TRUE(model.module) << model.error;
  auto step = model.function("step"), evaluate = model.function("evaluate");
  EXPECT_EQ(step.getArgAttrOfType<mlir::StringAttr>(0, "train.name"), "x");
  EXPECT_EQ(step.getArgAttrOfType<mlir::StringAttr>(1, "train.name"), "target");
  EXPECT_THAT(extents(step.getArgument(1)), ElementsAre(8));
  EXPECT_EQ(step.getNumResults(), 1u);
  EXPECT_EQ(evaluate.getNumResults(), 3u);
  EXPECT_THAT(extents(evaluate.front().getTerminator()->getOperand(2)), ElementsAre(8, 4));
  EXPECT_TRUE((*model.module)->getAttrOfType<mlir::StringAttr>("train.optimizer") == "sgd");
}

TEST(Import, OpsCarryTheirNodesNames) {
  auto proto = withWeights("g (float[2, 3] x) => (float[2, 4] y) { h = Relu(x) y = Gemm<transB = 1>(h, w, b) }");
  proto.mutable_graph()->mutable_node(0)->set_name("/relu/Relu");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(train::nodeName(model.only<train::ReluOp>().getLoc()), "/relu/Relu");
  EXPECT_EQ(train::nodeName(model.only<train::MatmulOp>().getLoc()), "Gemm y");
}

// --dim
TEST(Import, FixesDimensionsByName) {
  TrainingSpec spec;
  spec.dims = {{"N", 5}, {"x[1]", 3}};
  auto proto = withWeights(linear);
  proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->Clear();
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.function("step").getArgument(0)), ElementsAre(5, 3));
}

TEST(Import, TakesNewerIrVersions) {
  auto proto = withWeights(linear);
  proto.set_ir_version(onnx::Version::IR_VERSION + 5); // what a newer library writes for the same opset
  TrainingSpec spec;
  spec.batch = 8;
  EXPECT_TRUE(ImportedModel(proto, spec).module);
}

TEST(Import, CeilModeTakesAWindowThatIsOnlyBegun) {
  auto proto = parseModel("g (float[2, 3, 1, 3] x) => (float[2, 3, 1, 2] y) { y = MaxPool<kernel_shape = [2, 2], "
                          "strides = [2, 2], ceil_mode = 1>(x) }");
  addInitializer(proto, "w", {1});
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::MaxPoolOp>().getY()), ElementsAre(2, 3, 1, 2));
}

TEST(Import, CeilModeOutranksDeclaredRowsAndColumns) {
  auto poolTo = [](const std::string &declared) {
    auto proto = parseModel(
        "g (float[2, 3, 5, 5] x) => (float[" + declared +
        "] y) { y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [3, 3], ceil_mode = 1>(x) }");
    addInitializer(proto, "w", {1});
    TrainingSpec spec;
    spec.loss = AttachedLoss::Mse;
    return ImportedModel(proto, spec);
  };
  ImportedModel model =
      poolTo("2, 3, 3, 3"); // as PyTorch's exporter has it; the third windows would begin after the image
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::MaxPoolOp>().getY()), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(poolTo("2, 4, 3, 3").error,
              HasSubstr("output 'y' is declared as [2, 4, 3, 3] but the graph computes [2, 3, 2, 2]"));
}

TEST(Import, KeepsNamesThatTheFunctionsHave) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, step, evaluate) }");
  addInitializer(proto, "step", {4, 3});
  addInitializer(proto, "evaluate", {4});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(train::tensorName(model.variable("step/value")), "step");
  EXPECT_EQ(train::tensorName(model.variable("evaluate/value")), "evaluate");
}

TEST(Import, ReplacesAFixedBatchInReshapeLiterals) {
  TrainingSpec spec;
  spec.batch = 6;
  ImportedModel model(withWeights(R"(g (float[1, 3, 1, 1] x) => (float[1, 4] y) {
    s = Constant<value = int64[2] {1, 3}>()
    f = Reshape(x, s)
    y = Gemm<transB = 1>(f, w, b) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::MatmulOp>().getY()), ElementsAre(6, 4));
}

TEST(Import, FoldsShapeArithmetic) {
  TrainingSpec spec;
  spec.batch = 6;
  ImportedModel model(withWeights(R"(g (float[N, 1, 3] x) => (float[N, 4] y) {
    s = Shape(x)
    zero = Constant<value = int64 {0}>()
    n = Gather<axis = 0>(s, zero)
    axes = Constant<value = int64[1] {0}>()
    n1 = Unsqueeze(n, axes)
    open = Constant<value_ints = [-1]>()
    to = Concat<axis = 0>(n1, open)
    f = Reshape(x, to)
    y = Gemm<transB = 1>(f, w, b) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.ops<train::ReshapeOp>().size(), 1u);
  EXPECT_THAT(extents(model.only<train::ReshapeOp>().getY()), ElementsAre(6, 3));
}

/// PyTorch's exporter casts numbers that are float already on the way to attention's scale.
TEST(Import, CastsOfWhatIsFoldedStayFolded) {
  ImportedModel model(withWeights(R"(g (float[2, 4] x) => (float[2, 3] y) {
    extents = Shape<start = 1>(x)
    width = Cast<to = 1>(extents)
    again = Cast<to = 1>(width)
    root = Sqrt(again)
    h = Mul(x, root)
    y = Gemm(h, w) })"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::ScaleOp>().getFactor().convertToFloat(), 2.0f);
}

TEST(Import, LayerNormalization) {
  auto proto = parseModel(R"(g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {
    h = LayerNormalization<axis = 2, epsilon = 0.5>(x, scale)
    y = LayerNormalization<axis = -3>(h, all, all) })");
  addInitializer(proto, "scale", {4, 5});
  addInitializer(proto, "all", {3, 4, 5});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  auto norms = model.ops<train::LayerNormOp>();
  ASSERT_EQ(norms.size(), 2u);
  EXPECT_THAT(extents(norms[0].getY()), ElementsAre(6, 20));
  EXPECT_EQ(norms[0].getEpsilon().convertToFloat(), 0.5f);
  EXPECT_THAT(extents(norms[0].getBias()), ElementsAre(20)) << "zeros where there is no bias";
  EXPECT_THAT(extents(norms[1].getY()), ElementsAre(2, 60));
}

TEST(Import, ClipTakesAttributesAndInputs) {
  ImportedModel early(withWeights(
      "g (float[2, 3] x) => (float[2, 4] y) { h = Gemm<transB = 1>(x, w, b) y = Clip<min = 0.0, max = 6.0>(h) }", 7));
  ASSERT_TRUE(early.module) << early.error;
  EXPECT_EQ(early.only<train::ClipOp>().getMax().convertToFloat(), 6.0f);
  ImportedModel late(withWeights(R"(g (float[2, 3] x) => (float[2, 4] y) {
    low = Constant<value = float {0.0}>()
    high = Constant<value = float {6.0}>()
    h = Gemm<transB = 1>(x, w, b)
    y = Clip(h, low, high) })"));
  ASSERT_TRUE(late.module) << late.error;
  EXPECT_EQ(late.only<train::ClipOp>().getMax().convertToFloat(), 6.0f);
}

TEST(Import, LossAbsorbsAFinalSoftmax) {
  for (const char *last : {"Softmax<axis = 1>", "LogSoftmax<axis = -1>"}) {
    ImportedModel model(withWeights(
        std::string("g (float[2, 3] x) => (float[2, 4] y) { h = Gemm<transB = 1>(x, w, b) y = ") + last + "(h) }"));
    ASSERT_TRUE(model.module) << model.error;
    EXPECT_TRUE(model.ops<train::SoftmaxOp>().empty());
    EXPECT_TRUE(model.only<train::SoftmaxCrossEntropyOp>().getX().getDefiningOp<train::MatmulOp>());
  }
}

TEST(Import, EarlySoftmaxFlattens) {
  ImportedModel model(withWeights(R"(g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
    h = Softmax<axis = 1>(x)
    y = MatMul(h, m) })",
                                  11));
  EXPECT_THAT(model.error, HasSubstr("m"));
  auto proto =
      parseModel("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { h = Softmax<axis = 1>(x) y = MatMul(h, m) }", 11);
  addInitializer(proto, "m", {4, 4});
  ImportedModel flat(proto);
  ASSERT_TRUE(flat.module) << flat.error;
  EXPECT_THAT(extents(flat.only<train::SoftmaxOp>().getY()), ElementsAre(2, 12));
}

TEST(Import, SqueezesScoresOfWholeImages) {
  auto proto =
      parseModel("g (float[2, 3, 5, 5] x) => (float[2, 4, 1, 1] y) { h = Conv(x, k) y = GlobalAveragePool(h) }");
  addInitializer(proto, "k", {4, 3, 1, 1});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.function("step").getArgument(1)), ElementsAre(2));
}

TEST(Import, PadsToSame) {
  auto proto = parseModel("g (float[2, 3, 6, 6] x) => (float[2, 4, 3, 3] y) { y = Conv<auto_pad = \"SAME_UPPER\", "
                          "strides = [2, 2]>(x, k) }");
  addInitializer(proto, "k", {4, 3, 3, 3});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(model.only<train::ConvOp>().getPads().vec(), ElementsAre(0, 0, 1, 1));
}

TEST(Import, OneDimensionIsAnImageOfHeightOne) {
  auto proto = parseModel("g (float[2, 3, 9] x) => (float[2, 4, 5] y) { h = Conv<pads = [1, 1], strides = [2]>(x, k) y "
                          "= MaxPool<kernel_shape = [1]>(h) }");
  addInitializer(proto, "k", {4, 3, 3});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(model.only<train::ConvOp>().getPads().vec(), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(extents(model.function("step").getArgument(1)), ElementsAre(2, 5));
}

TEST(Import, OperandsThatSpanAnImageBecomeOne) {
  auto proto = parseModel(R"(g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {
    a = Mul(x, rows)
    y = Add(a, channels) })");
  addInitializer(proto, "rows", {3, 4, 1});
  addInitializer(proto, "channels", {3, 1, 1});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::MulOp>()->getOperand(1)), ElementsAre(1, 3, 4, 1));
  EXPECT_THAT(extents(model.only<train::AddOp>()->getOperand(1)), ElementsAre(3, 1, 1));
}

TEST(Import, TransposedConvolutionSizes) {
  auto proto = parseModel(R"(g (float[1, 2, 5, 5] x) => (float[1, 3, 10, 10] y) {
    y = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]>(x, k, c) })");
  addInitializer(proto, "k", {2, 3, 3, 3});
  addInitializer(proto, "c", {3});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(model.only<train::ConvTransposeOp>().getOutputSize().vec(), ElementsAre(10, 10));
  EXPECT_THAT(extents(model.only<train::AddOp>().getB()), ElementsAre(1, 3, 1, 1));
}

TEST(Import, UpsampleIsAnAsymmetricResize) {
  auto proto = parseModel(R"(g (float[1, 3, 2, 2] x) => (float[1, 4, 4, 4] y) {
    h = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(x)
    y = Conv(h, k) })",
                          7);
  addInitializer(proto, "k", {4, 3, 1, 1});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  auto resize = model.only<train::ResizeOp>();
  EXPECT_EQ(resize.getCoordinates(), train::Coordinates::Asymmetric);
  EXPECT_THAT(resize.getSize().vec(), ElementsAre(4, 4));
}

TEST(Import, EndsInItsOwnLoss) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  ImportedModel model(withWeights(R"(g (float[2, 3] x, int64[2] labels) => (float loss) {
    h = Gemm<transB = 1>(x, w, b)
    p = LogSoftmax<axis = 1>(h)
    loss = NegativeLogLikelihoodLoss(p, labels) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.function("step").getArgAttrOfType<mlir::StringAttr>(1, "train.name"), "labels");
  EXPECT_TRUE(model.ops<train::SoftmaxOp>().empty());
}

TEST(Import, InlinesLocalFunctions) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 4] y) { y = my.Linear(x, w, b) }");
  addInitializer(proto, "w", {4, 3});
  addInitializer(proto, "b", {4});
  auto *import = proto.add_opset_import();
  import->set_domain("my");
  import->set_version(1);
  onnx::FunctionProto &function = *proto.add_functions();
  function.set_name("Linear");
  function.set_domain("my");
  for (const char *input : {"a", "v", "c"})
    function.add_input(input);
  function.add_output("r");
  function.add_opset_import()->set_version(17);
  *function.add_node() =
      parseModel("g (float[2, 3] a) => (float[2, 4] r) { r = Gemm<transB = 1>(a, v, c) }").graph().node(0);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.only<train::MatmulOp>().getBias());
}

TEST(Import, InlinesCompositesOfTheStandard) {
  auto proto = withWeights("g (float[2, 3] x) => (float[2, 4] y) { h = Swish(x) y = Gemm<transB = 1>(h, w, b) }", 24);
  proto.set_ir_version(11);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.ops<train::SigmoidOp>().size(), 1u);
}

/// As each layer of a decoder computes its mask again, from shapes of its own.
TEST(Import, ComputesEqualConstantsOnce) {
  TrainingSpec spec;
  spec.limits.constantBytes = 5000; // one constant of 280 elements, what it is computed from, and shapes
  auto proto = withWeights(R"(g (float[4, 70] x) => (float[4, 70] y) {
    s = Shape(x) c = ConstantOfShape(s) m = Abs(c) p = MatMul(x, q) h = Add(p, m)
    t = Shape(h) d = ConstantOfShape(t) n = Abs(d) y = Add(h, n) })");
  addInitializer(proto, "q", {70, 70});
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  auto sums = model.ops<train::AddOp>();
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].getB(), sums[1].getB());
}

/// But statistics that begin alike change each for itself.
TEST(Import, KeepsEqualStatesApart) {
  const std::string start = "g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {"
                            " n = Constant<value = int64[1] {3}>() c = ConstantOfShape(n) m = Abs(c)"
                            " d = ConstantOfShape(n) v = Abs(d) ";
  auto proto = withWeights(start + "y, m1, v1, m2, v2 = BatchNormalization(x, s, s, m, v) }", 13);
  addInitializer(proto, "s", {3});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  auto update = model.only<train::UpdateStatisticsOp>();
  EXPECT_NE(train::variableOf(update.getRunningMean()), train::variableOf(update.getRunningVar()));
}

} // namespace
} // namespace sluice
