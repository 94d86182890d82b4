// SPDX-License-Identifier: Apache-2.0
// Random numbers as exporters write them out become train.dropout, or are refused.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

/// x [2,3,4,4] times `mask`, which `nodes` make.
onnx::ModelProto droppedBy(const std::string &nodes) {
  auto model = parseModel("g (float[2, 3, 4, 4] x) => (float[2, 4] y) {"
                          " keep = Constant<value = float {0.75}>()"
                          " samples = Constant<value = int64[4] {2, 1, 1, 1}>()"
                          " all = Constant<value = int64[1] {1}>()"
                          " channels = Constant<value = int64[4] {2, 3, 1, 1}>() " +
                          nodes + " h = Mul(mask, x) f = Flatten(h) y = Gemm<transB = 1>(f, w) }");
  addInitializer(model, "w", {4, 48}, 0.1f, 0.01f);
  return model;
}

constexpr const char *draw = "e = ConstantOfShape(samples) u = RandomUniformLike(e) ";

TEST(RandomDraws, DropSamplesAsStochasticDepthDoes) {
  ImportedModel model(droppedBy(std::string(draw) + "l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"));
  ASSERT_TRUE(model.module) << model.error;
  auto dropout = model.only<train::DropoutOp>();
  EXPECT_EQ(dropout.getGroup(), 48u);
  EXPECT_FLOAT_EQ(dropout.getRatio().convertToFloat(), 0.25f);
  EXPECT_TRUE(model.ops<train::ScaleOp>().empty());
  EXPECT_TRUE(model.ops<train::DropoutOp>("evaluate").empty());
  EXPECT_TRUE(model.ops<train::ScaleOp>("evaluate").empty());
}

// x / p * floor(p + u): what is after the quotient has the mean p.
TEST(RandomDraws, DropByRoundingDown) {
  ImportedModel model(droppedBy(std::string(draw) + "s = Add(keep, u) mask = Floor(s)"));
  ASSERT_TRUE(model.module) << model.error;
  auto dropout = model.only<train::DropoutOp>();
  EXPECT_EQ(dropout.getGroup(), 48u);
  EXPECT_FLOAT_EQ(dropout.getRatio().convertToFloat(), 0.25f);
  EXPECT_FLOAT_EQ(dropout.getX().getDefiningOp<train::ScaleOp>().getFactor().convertToFloat(), 0.75f);
  EXPECT_TRUE(model.ops<train::DropoutOp>("evaluate").empty());
  EXPECT_FLOAT_EQ(model.only<train::ScaleOp>("evaluate").getFactor().convertToFloat(), 0.75f);
  ImportedModel divided(droppedBy(std::string(draw) + "s = Add(u, keep) d = Floor(s) mask = Div(d, keep)"));
  ASSERT_TRUE(divided.module) << divided.error;
  EXPECT_TRUE(divided.ops<train::ScaleOp>().empty());
}

TEST(RandomDraws, DropWholeBatchesAndElements) {
  ImportedModel batch(
      droppedBy("quarter = Constant<value = float {0.25}>() u = RandomUniform<shape = [1]>()"
                " l = GreaterOrEqual(u, keep) c = Cast<to = 1>(l) d = Div(c, quarter) mask = Identity(d)"));
  ASSERT_TRUE(batch.module) << batch.error;
  EXPECT_EQ(batch.only<train::DropoutOp>().getGroup(), 96u);
  EXPECT_FLOAT_EQ(batch.only<train::DropoutOp>().getRatio().convertToFloat(), 0.75f);
  ImportedModel elements(
      droppedBy("u = RandomUniformLike(x) l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"));
  ASSERT_TRUE(elements.module) << elements.error;
  EXPECT_EQ(elements.only<train::DropoutOp>().getGroup(), 1u);
}

// The file's batch of 2 is in the mask's shape, too: it must not become one number for all of 8 samples.
TEST(RandomDraws, DropSamplesOfAnotherBatch) {
  TrainingSpec spec;
  spec.batch = 8;
  ImportedModel model(droppedBy(std::string(draw) + "l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::DropoutOp>().getGroup(), 48u);
}

TEST(RandomDraws, OneMaskIsOneDrawWhereverItDrops) {
  auto proto = droppedBy(std::string(draw) + "l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"
                                             " r = Relu(x) q = Mul(r, mask) s = Flatten(q) t = Gemm<transB = 1>(s, w)");
  auto &nodes = *proto.mutable_graph()->mutable_node();
  nodes[nodes.size() - 1].set_output(0, "z");
  auto *sum = proto.mutable_graph()->add_node();
  sum->set_op_type("Add"), sum->add_input("z"), sum->add_input("t"), sum->add_output("y");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  auto both = model.ops<train::DropoutOp>();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].getKey(), both[1].getKey());
}

TEST(RandomDraws, OfBernoulli) {
  ImportedModel model(droppedBy("p = ConstantOfShape<value = float[1] {0.5}>(samples) c = Bernoulli(p)"
                                " two = Constant<value = float {2.0}>() mask = Mul(c, two)"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::DropoutOp>().getGroup(), 48u);
  EXPECT_TRUE(model.ops<train::ScaleOp>().empty());
}

// Images may lie with their channels innermost, so that a channel is no run of neighbours but of a flat view.
TEST(RandomDraws, DropChannels) {
  ImportedModel model(droppedBy("e = ConstantOfShape(channels) u = RandomUniformLike(e) l = Less(u, keep)"
                                " c = Cast<to = 1>(l) mask = Div(c, keep)"));
  ASSERT_TRUE(model.module) << model.error;
  auto dropout = model.only<train::DropoutOp>();
  EXPECT_EQ(dropout.getGroup(), 16u);
  EXPECT_EQ(extents(dropout.getX()), (std::vector<int64_t>{6, 16}));
}

// torch.export: the probability has the draw's type, and the mask that of the tensor whose shape the draw has.
TEST(RandomDraws, OfTorchExport) {
  ImportedModel model(droppedBy("z = Constant<value = float[1] {0.0}>() e = Expand(z, samples) u = RandomUniformLike(e)"
                                " p = CastLike(keep, u) l = Less(u, p) c = CastLike(l, e) mask = Div(c, keep)"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::DropoutOp>().getGroup(), 48u);
}

TEST(RandomDraws, DropNothingWithoutDropout) {
  TrainingSpec spec;
  spec.dropout = DropoutMode::Off;
  ImportedModel model(droppedBy(std::string(draw) + "l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.ops<train::DropoutOp>().empty());
}

/// Ops of a model whose mask is a tensor of the step, in both functions.
void expectTensor(const std::string &nodes, train::Distribution distribution = train::Distribution::Uniform) {
  ImportedModel model(droppedBy(nodes));
  ASSERT_TRUE(model.module) << nodes << ": " << model.error;
  for (const char *function : {"step", "evaluate"}) {
    EXPECT_TRUE(model.ops<train::DropoutOp>(function).empty()) << nodes;
    EXPECT_EQ(model.only<train::NoiseOp>(function).getDistribution(), distribution) << nodes;
  }
}

TEST(RandomDraws, AreTensorsWhereTheyDropNothing) {
  const std::string scaledMask = "c = Cast<to = 1>(l) mask = Div(c, keep)";
  expectTensor("mask = RandomNormalLike<mean = 2.0, scale = 0.5>(x)", train::Distribution::Normal);
  expectTensor("mask = RandomNormal<shape = [2, 3, 4, 4]>()", train::Distribution::Normal);
  expectTensor("u = RandomUniformLike<low = -1.0>(x) mask = Identity(u)");
  expectTensor(std::string(draw) + "mask = Identity(u)");
  expectTensor(std::string(draw) + "mask = Sigmoid(u)");
  expectTensor(std::string(draw) + "l = Less(u, u) c = Cast<to = 1>(l) mask = Identity(c)"); // both are one draw
  expectTensor(std::string(draw) + "v = Mul(u, keep) l = Less(v, keep) mask = Cast<to = 1>(l)");
  expectTensor(std::string(draw) + "l = Less(u, keep) mask = Cast<to = 1>(l)"); // an unscaled mask is the model's own
  expectTensor(std::string(draw) + "a = Abs(u) l = Less(a, keep) " + scaledMask);
  expectTensor("p = Constant<value = float[4] {0.5, 0.25, 0.5, 0.5}>() mask = Bernoulli(p)");
  expectTensor("p = Sigmoid(x) mask = Bernoulli(p)");
}

TEST(RandomDraws, OfOneNumberForEachColumnAreTensorsInTheStepAlone) {
  ImportedModel model(droppedBy("o = Constant<value = int64[4] {1, 3, 1, 1}>() e = ConstantOfShape(o)"
                                " u = RandomUniformLike(e) l = Less(u, keep) c = Cast<to = 1>(l) mask = Div(c, keep)"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(extents(model.only<train::NoiseOp>()), (std::vector<int64_t>{1, 3, 1, 1}));
  EXPECT_TRUE(model.ops<train::NoiseOp>("evaluate").empty());
}

// What is written down for the file's batch is drawn for the one that replaces it.
TEST(RandomDraws, AreAsManyAsTheBatch) {
  TrainingSpec spec;
  spec.batch = 8;
  ImportedModel model(droppedBy("mask = RandomNormal<shape = [2, 1, 1, 1]>()"), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(extents(model.only<train::NoiseOp>()), (std::vector<int64_t>{8, 1, 1, 1}));
}

TEST(RandomDraws, EachNodeDrawsItsOwn) {
  ImportedModel model(droppedBy("a = RandomNormalLike(x) b = RandomNormalLike(x) mask = Sub(a, b)"));
  ASSERT_TRUE(model.module) << model.error;
  auto both = model.ops<train::NoiseOp>(), evaluated = model.ops<train::NoiseOp>("evaluate");
  ASSERT_EQ(both.size(), 2u);
  ASSERT_EQ(evaluated.size(), 2u);
  EXPECT_NE(both[0].getKey(), both[1].getKey());
  EXPECT_EQ(both[1].getKey(), evaluated[1].getKey());
}

TEST(RandomDraws, RefuseWhatCannotBeDrawn) {
  auto errorOf = [](const std::string &nodes) { return ImportedModel(droppedBy(nodes)).error; };
  EXPECT_THAT(errorOf("p = Constant<value = float {1.5}>() mask = Bernoulli(p)"), HasSubstr("a probability is 1.5"));
  EXPECT_THAT(errorOf(std::string(draw) + "two = Constant<value = float {2.0}>() l = Less(u, keep) c = Cast<to = 1>(l)"
                                          " mask = Mul(c, two)"),
              HasSubstr("is not divided by the probability that it keeps one: 2.0"));
  EXPECT_THAT(errorOf("mask = RandomNormal<shape = [9000000000, 3, 4, 4]>()"), HasSubstr("draws a tensor that"));
}

} // namespace
} // namespace sluice
