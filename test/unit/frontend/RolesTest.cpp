// SPDX-License-Identifier: Apache-2.0
// Which tensors of a model are parameters, states and constants, and where their first values come from.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;
using train::Init;
using train::Role;

constexpr const char *normalized = R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) {
  c = Conv(x, k)
  y = BatchNormalization<momentum = 0.75, training_mode = 1>(c, s, b, m, v) })";

onnx::ModelProto normalizedModel(const char *graph = normalized, int opset = 14) {
  auto model = parseModel(graph, opset);
  addInitializer(model, "k", {3, 3, 1, 1}, 0.1f, 0.1f);
  addInitializer(model, "s", {3}, 1);
  addInitializer(model, "b", {3}, 0);
  addInitializer(model, "m", {3}, 0);
  addInitializer(model, "v", {3}, 1);
  return model;
}

TEST(Roles, BatchNormHasParametersAndStates) {
  ImportedModel model(normalizedModel());
  ASSERT_TRUE(model.module) << model.error;
  for (const char *name : {"k", "s", "b"})
    EXPECT_EQ(model.variable(name).getRole(), Role::Parameter) << name;
  for (const char *name : {"m", "v"})
    EXPECT_EQ(model.variable(name).getRole(), Role::State) << name;
  auto update = model.only<train::UpdateStatisticsOp>();
  EXPECT_FLOAT_EQ(update.getMomentum().convertToFloat(), 0.25f);
  EXPECT_EQ(update.getCount(), 16u);
  EXPECT_EQ(model.ops<train::ChannelAffineOp>("evaluate").size(), 1u);
  EXPECT_TRUE(model.ops<train::UpdateStatisticsOp>("evaluate").empty());
}

TEST(Roles, InventedConstantsMeetNoTensorOfTheirName) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) {
    h = HardSigmoid<beta = 0.25>(x)
    y = Mul(h, s) })");
  proto.mutable_graph()->mutable_node(1)->set_input(1, "h/shift");
  addInitializer(proto, "h/shift", {3}, 2);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("h/shift").getRole(), Role::Constant);
  EXPECT_EQ(model.variable("h/shift/value").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("h/shift/value").getType().getShape().vec(), std::vector<int64_t>{3});
}

TEST(Roles, FrozenBatchNormReadsItsStatistics) {
  TrainingSpec spec;
  spec.batchNorm = BatchNormMode::Frozen;
  ImportedModel model(normalizedModel(), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.ops<train::ChannelAffineOp>().size(), 1u);
  EXPECT_TRUE(model.ops<train::UpdateStatisticsOp>().empty());
}

TEST(Roles, InitDrawsByRole) {
  TrainingSpec spec;
  spec.init = InitialValues::Kaiming;
  ImportedModel model(normalizedModel(), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("k").getInit(), Init::Kaiming);
  EXPECT_EQ(model.variable("k").getFanIn(), 3u);
  EXPECT_EQ(model.variable("s").getInit(), Init::One);
  EXPECT_EQ(model.variable("b").getInit(), Init::Zero);
  EXPECT_EQ(model.variable("m").getInit(), Init::Zero);
  EXPECT_EQ(model.variable("v").getInit(), Init::One);
}

TEST(Roles, FreezeMatchesWholeNames) {
  TrainingSpec spec;
  spec.freeze = {"k|sx"};
  ImportedModel model(normalizedModel(), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("k").getRole(), Role::Constant);
  EXPECT_EQ(model.variable("s").getRole(), Role::Parameter);
  EXPECT_THAT(listParameters(*model.module), HasSubstr("constant   frozen by --freeze"));
  spec.freeze = {"("};
  ImportedModel invalid(normalizedModel(), spec);
  EXPECT_THAT(invalid.error, HasSubstr("--freeze=( is not a regular expression"));
}

TEST(Roles, WhatBothFlagsNameIsAsWithoutThem) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) {
    h = Gemm(x, w)
    g = Mul(h, s)
    y = Div(g, c) })");
  rename(*proto.mutable_graph(), "w", "body.weight");
  rename(*proto.mutable_graph(), "s", "head.scale");
  rename(*proto.mutable_graph(), "c", "head/Const:0");
  addInitializer(proto, "body.weight", {3, 3}, 0.1f, 0.1f);
  addInitializer(proto, "head.scale", {3}, 1, 0.1f);
  addInitializer(proto, "head/Const:0", {}, 2);
  TrainingSpec spec;
  spec.freeze = {".*"};
  spec.train = {"head.*"};
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("body.weight").getRole(), Role::Constant);
  EXPECT_EQ(model.variable("head.scale").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("head/Const:0").getRole(), Role::Constant);
  spec.freeze = {};
  ImportedModel byHand(proto, spec);
  ASSERT_TRUE(byHand.module) << byHand.error;
  EXPECT_EQ(byHand.variable("head/Const:0").getRole(), Role::Parameter);
}

TEST(Roles, PatternsThatMatchNothingAreErrors) {
  TrainingSpec spec;
  spec.freeze = {"conv.*"};
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error,
              HasSubstr("--freeze=conv.* matches no whole name of a tensor that could be trained"));
  spec.freeze = {"m|v"};
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error,
              HasSubstr("running statistics are held by --batch-norm=frozen"));
  spec.freeze = {};
  spec.train = {"nothing"};
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error, HasSubstr("--train=nothing matches no whole name"));
  spec.train = {"k", "nothing"}; // each flag is meant
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error, HasSubstr("--train=nothing matches no whole name"));
  spec.train = {{"nothing", true}, {"k", true}}; // of a list, a line may match nothing
  ImportedModel some(normalizedModel(), spec);
  EXPECT_TRUE(some.module) << some.error;
  EXPECT_THAT(some.report.remarks[0], HasSubstr("1 of the 2 regular expressions of --train match nothing: 'nothing'"));
  spec.train = {{"nothing", true}, "k", "typo"};
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error, HasSubstr("--train=typo matches no whole name"));
  spec.train = {{"nothing", true}, {"less", true}};
  EXPECT_THAT(ImportedModel(normalizedModel(), spec).error, HasSubstr("none of the 2 regular expressions of --train"));
}

TEST(Roles, MasksAreConstants) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 3] y) { h = Gemm(x, w) y = Add(h, mask) }");
  addInitializer(proto, "w", {3, 3});
  addInitializer(proto, "mask", {3}, -INFINITY);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("mask").getRole(), Role::Constant);
  EXPECT_THAT(model.variable("mask").getReason()->str(), HasSubstr("infinities"));
}

constexpr const char *constantBias = R"(g (float[2, 3] x) => (float[2, 3] y) {
    c = Constant<value = float[3] {1.0, 2.0, 3.0}>()
    h = Gemm(x, w, c)
    y = Add(h, c) })";

/// Paddle's exporter writes all weights so; PyTorch's writes what is no parameter so.
TEST(Roles, AConstantNodeThatIsAWeightIsTrained) {
  auto proto = parseModel(constantBias);
  addInitializer(proto, "w", {3, 3}, 0.1f, 0.1f);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("c").getRole(), Role::Parameter);
  EXPECT_THAT(model.report.remarks[0], HasSubstr("2 tensors are trained, 0 are held fixed; trained by rule: 'c'"));
}

TEST(Roles, ConstantNodesOfPyTorchAreConstants) {
  auto proto = parseModel(constantBias);
  addInitializer(proto, "w", {3, 3}, 0.1f, 0.1f);
  proto.set_producer_name("pytorch");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("c").getRole(), Role::Constant);
  EXPECT_TRUE(model.variable("c").getValue());
  TrainingSpec spec;
  spec.train = {"c"};
  ImportedModel trained(proto, spec);
  ASSERT_TRUE(trained.module) << trained.error;
  EXPECT_EQ(trained.variable("c").getRole(), Role::Parameter);
  EXPECT_THAT(trained.report.remarks, testing::Not(testing::Contains(HasSubstr("--train changes nothing"))));
}

/// ONNX's light_* models: every weight comes out of ConstantOfShape.
TEST(Roles, ConstantsAreWeightsWhereNothingElseIs) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 4] y) {
    ws = Constant<value = int64[2] {4, 3}>()
    w = ConstantOfShape<value = float[1] {0.5}>(ws)
    bs = Constant<value = int64[1] {4}>()
    b = ConstantOfShape<value = float[1] {0.5}>(bs)
    h = Gemm<transB = 1>(x, w, b)
    two = Constant<value = float[4] {2.0, 2.0, 2.0, 3.0}>()
    y = Mul(h, two) })");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("w").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("b").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("two").getRole(), Role::Constant);
}

/// A layer norm without parameters beside weights that no product reads as they are.
TEST(Roles, ConstantsAreNoWeightsWhereWeightsAreMadeOfOthers) {
  const std::string graph = R"(g (float[2, 3] x) => (float[2, 3] y) {
    w = Mul(v, g)
    h = MatMul(x, w)
    scale = Constant<value = float[3] {1.0, 1.0, 1.0}>()
    filter = Constant<value = float[3, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}>()
    n = LayerNormalization(h, scale)
    y = MatMul(n, filter) })";
  for (const char *producer : {"pytorch", "another"}) {
    auto proto = parseModel(graph);
    proto.set_producer_name(producer);
    addInitializer(proto, "v", {3, 3}, 0.1f, 0.1f);
    addInitializer(proto, "g", {1, 3}, 0.5f, 0.1f);
    ImportedModel model(proto);
    ASSERT_TRUE(model.module) << model.error;
    EXPECT_EQ(model.variable("v").getRole(), Role::Parameter) << producer;
    EXPECT_EQ(model.variable("scale").getRole(), Role::Constant) << producer;
    EXPECT_EQ(model.variable("filter").getRole() == Role::Constant, std::string(producer) == "pytorch");
  }
}

TEST(Roles, WhatPyTorchWritesAsConstantsIsHeldWhereThereIsNoWeight) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) {
    h = Add(x, p)
    filter = Constant<value = float[3, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}>()
    y = MatMul(h, filter) })");
  proto.set_producer_name("pytorch");
  addInitializer(proto, "p", {3}, 0.1f, 0.1f);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("p").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("filter").getRole(), Role::Constant);
}

/// PyTorch refuses the first, and writes momentum=None as the second: neither may pass without a word.
TEST(Roles, StatisticsThatNobodyCanHaveMeantAreNamed) {
  auto remarksOf = [](const std::string &extents, const std::string &attributes) {
    const std::string graph = "g (float[" + extents + "] x) => (float[" + extents + R"(] y) {
      c = Conv(x, k)
      y = BatchNormalization<training_mode = 1)" +
                              attributes + ">(c, s, b, m, v) }";
    ImportedModel model(normalizedModel(graph.c_str()));
    EXPECT_TRUE(model.module) << model.error;
    return model.report.remarks;
  };
  const auto single = testing::Contains(HasSubstr("takes statistics of one value a channel"));
  const auto last = testing::Contains(HasSubstr("become those of the last batch"));
  EXPECT_THAT(remarksOf("1, 3, 1, 1", ""), single);
  EXPECT_THAT(remarksOf("1, 3, 1, 2", ""), testing::Not(single));
  EXPECT_THAT(remarksOf("2, 3, 1, 1", ""), testing::Not(single));
  EXPECT_THAT(remarksOf("2, 3, 1, 1", ", momentum = 0.0"), last);
  EXPECT_THAT(remarksOf("2, 3, 1, 1", ", momentum = 0.5"), testing::Not(last));
}

/// PyTorch's exporter shares equal initializers: the Identity's name is the parameter's own.
TEST(Roles, IdentityOfAUniformTensorIsItsOwnVariable) {
  auto proto = normalizedModel(R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) {
    bias = Identity(m)
    scale = Identity(v)
    tied = Identity(k)
    c = Conv(x, k)
    d = Conv(c, tied)
    y = BatchNormalization<training_mode = 1>(d, scale, bias, m, v) })");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("scale").getRole(), Role::Parameter);
  EXPECT_EQ(model.variable("v").getRole(), Role::State);
  EXPECT_FALSE(model.variable("tied"));
}

TEST(Roles, AUniformTensorThatOnlyACastReadsKeepsItsName) {
  auto proto = normalizedModel(R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) {
    scale = Cast<to = 1>(s)
    c = Conv(x, k)
    y = BatchNormalization(c, scale, b, m, v) })");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.variable("s"));
  EXPECT_FALSE(model.variable("scale"));
}

TEST(Roles, AStatisticThatIsAlsoAWeightBecomesTwoVariables) {
  auto proto = normalizedModel(R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) {
    c = Conv(x, k)
    y = BatchNormalization(c, v, m, m, v) })");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("v").getRole(), Role::Parameter);
  auto statistic = model.variable("v/statistic");
  ASSERT_TRUE(statistic);
  EXPECT_EQ(statistic.getRole(), Role::State);
  EXPECT_EQ(statistic->getAttrOfType<mlir::StringAttr>("train.source"), "v");
}

TEST(Roles, UnusedInitializersAndBranchesAreLeftOut) {
  auto proto = normalizedModel(R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y, float[4, 3, 2, 2] z) {
    y = Conv(x, k)
    z = BatchNormalization(y, s, b, m, v) })");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_FALSE(model.variable("s"));
}

/// What the legacy exporter folds has its own names.
TEST(Roles, SayWhatIsFoldedAndWhatTrainDoesNotChange) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 4] y) { h = MatMul(x, a) y = Add(h, b) }");
  addInitializer(proto, "onnx::MatMul_9", {3, 4}, 0.1f, 0.01f);
  addInitializer(proto, "fc.bias", {4}, 0.1f, 0.01f);
  rename(*proto.mutable_graph(), "a", "onnx::MatMul_9");
  rename(*proto.mutable_graph(), "b", "fc.bias");
  TrainingSpec spec;
  ASSERT_EQ(ImportedModel(proto, spec).error, "");
  const auto useless = testing::Contains(HasSubstr("--train changes nothing"));
  EXPECT_THAT(ImportedModel(proto, spec).report.remarks,
              testing::AllOf(testing::Contains(HasSubstr("1 tensor of 2 that are trained are what PyTorch's exporter "
                                                         "folded, and no parameter of a module: 'onnx::MatMul_9'")),
                             testing::Not(useless)));
  spec.train = {"fc.*"};
  EXPECT_THAT(ImportedModel(proto, spec).report.remarks, useless);
  spec.freeze = {".*"};
  EXPECT_THAT(ImportedModel(proto, spec).report.remarks, testing::Not(useless));
}

} // namespace
} // namespace sluice
