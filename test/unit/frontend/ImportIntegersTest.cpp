// SPDX-License-Identifier: Apache-2.0
// Integers and truth values that are data: ids of rows, masks, targets of tokens.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A graph with the weights w [4, 3] and b [4].
onnx::ModelProto withWeights(const std::string &graph) {
  auto model = parseModel(graph, 17);
  addInitializer(model, "w", {4, 3}, 0.1f, 0.01f);
  addInitializer(model, "b", {4}, 0.2f);
  return model;
}

std::string errorOf(const std::string &graph, const TrainingSpec &spec = {}) {
  return ImportedModel(withWeights(graph), spec).error;
}

TEST(ImportIntegers, TokensHaveTargetsOfTheirOwn) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::TokenCrossEntropy;
  spec.ignoreIndex = -100;
  ImportedModel model(withWeights(R"(g (int64[2, 5] ids) => (float[2, 5, 3] y) {
    h = Gather(w, ids)
    y = Softmax(h) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  auto rows = model.only<train::EmbeddingOp>();
  EXPECT_EQ(rows.getIds(), model.function("step").getArgument(0));
  EXPECT_THAT(model.variable("w").getReason()->str(), HasSubstr("table of node 'h' (Gather)"));
  EXPECT_EQ(model.variable("w").getRole(), train::Role::Parameter);
  EXPECT_THAT(extents(model.function("step").getArgument(1)), ElementsAre(2, 5));
  auto loss = model.only<train::SoftmaxCrossEntropyOp>();
  EXPECT_THAT(extents(loss.getX()), ElementsAre(10, 3));
  EXPECT_EQ(loss.getIgnoreIndex(), std::optional<int64_t>(-100));
  EXPECT_TRUE(model.ops<train::SoftmaxOp>().empty()); // the loss has it
}

// Identity names equal initializers anew, of which integers are still known.
TEST(ImportIntegers, IndicesStayKnownUnderOtherNames) {
  auto proto = withWeights(R"(g (float[1, 3] x) => (float[1, 1] y) {
    same = Identity(column)
    last = Constant<value_ints = [-1]>()
    at = Unsqueeze(same, last)
    t = Transpose(x)
    y = GatherND(t, at) })");
  onnx::TensorProto *column = proto.mutable_graph()->add_initializer();
  column->set_name("column");
  column->set_data_type(onnx::TensorProto::INT64);
  column->add_dims(1);
  column->add_int64_data(-2);
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse; // of one number
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
}

TEST(ImportIntegers, NeighboursAreASlabAndOtherRowsAnEmbedding) {
  ImportedModel model(withWeights(R"(g (float[2, 3] x) => (float[2, 3] y) {
    first = Constant<value_ints = [1, 2]>()
    same = Constant<value_ints = [-1, -1]>()
    c = Gather(w, first)
    d = Gather(w, same)
    s = Add(c, d)
    y = Add(x, s) })"));
  ASSERT_TRUE(model.module) << model.error;
  auto variable = model.variable("d/indices");
  ASSERT_TRUE(variable);
  for (auto id : variable.getValue()->getValues<int64_t>())
    EXPECT_EQ(id, 3); // counted from the front
  model.only<train::EmbeddingOp>();
}

TEST(ImportIntegers, PartsOfASequenceAreSlabs) {
  ImportedModel model(withWeights(R"(g (float[2, 5] x) => (float[2, 4] y) {
    length = Constant<value_int = 3>()
    last = Constant<value_int = -1>()
    parts = SplitToSequence<axis = 1>(x, length)
    rest = SequenceAt(parts, last)
    wide = Concat<axis = 1>(rest, rest)
    y = Identity(wide) })"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::SliceOp>().getStart(), 3u);
}

TEST(ImportIntegers, MasksAreNumbers) {
  ImportedModel model(withWeights(R"(g (float[2, 3] x, int64[2, 3] mask, bool[2, 3] keep) => (float[2, 4] y) {
    zero = Constant<value_int = 0>()
    low = Constant<value_float = -1.0e30>()
    hidden = Equal(mask, zero)
    both = And(hidden, keep)
    z = Where(both, low, x)
    y = Gemm<transB = 1>(z, w) })"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.only<train::CompareOp>().getPredicate(), train::Comparison::Equal);
  EXPECT_EQ(model.ops<train::CastOp>().size(), 2u); // of both inputs
  EXPECT_EQ(model.only<train::SelectOp>().getCondition(), model.only<train::MulOp>().getY());
}

TEST(ImportIntegers, WhatIsOnlyComparedIsNoWeight) {
  auto proto = withWeights(R"(g (float[2, 3] x) => (float[2, 4] y) {
    zero = Constant<value_float = 0.0>()
    axes = Constant<value_ints = [0]>()
    row = Unsqueeze(v, axes)
    hidden = Equal(row, zero)
    z = Where(hidden, zero, x)
    y = Gemm<transB = 1>(z, w) })");
  addInitializer(proto, "v", {3});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_FALSE(model.variable("v"));
  EXPECT_TRUE(model.ops<train::CompareOp>().empty()); // folded
}

/// What programs check of the input "ids"; 0: nothing.
train::IdLimit limitOf(ImportedModel &model) { return train::idLimitOf(*model.module, "ids"); }

TEST(ImportIntegers, IdsMayBeComputed) {
  ImportedModel model(withWeights(R"(g (int64[2, 5] ids) => (float[2, 5, 3] y) {
    two = Constant<value_int = 2>()
    field = Mod(ids, two)
    row = Add(field, two)
    y = Gather(w, row) })"));
  ASSERT_TRUE(model.module) << model.error;
  auto cast = model.only<train::EmbeddingOp>().getIds().getDefiningOp<train::CastOp>();
  ASSERT_TRUE(cast);
  EXPECT_TRUE(cast.getX().getDefiningOp<train::AddOp>());
  EXPECT_EQ(limitOf(model).upper, 0); // the kernel looks at them
}

TEST(ImportIntegers, MovedIdsAreCheckedWhereDataBringThem) {
  ImportedModel model(withWeights(R"(g (int64[2, 5] ids) => (float[2, 4, 3] y) {
    zero = Constant<value_ints = [0]>()
    four = Constant<value_ints = [4]>()
    one = Constant<value_ints = [1]>()
    front = Slice(ids, zero, four, one)
    turned = Transpose<perm = [1, 0]>(front)
    rows = Gather(w, turned)
    y = Transpose<perm = [1, 0, 2]>(rows) })"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(limitOf(model).upper, 4);
}

/// What the graph adds to ids, takes away, or cuts off is undone where the data are checked.
TEST(ImportIntegers, ShiftedIdsAreCheckedWhereDataBringThem) {
  const auto limitsOf = [](const std::string &nodes) {
    ImportedModel model(withWeights(R"(g (int64[2, 5] ids) => (float[2, 5, 3] y) {
      one = Constant<value_int = 1>()
      two = Constant<value_int = 2>()
      nine = Constant<value_int = 9>()
      steps = Constant<value_ints = [0, 1, 2, 0, 0]>()
      )" + nodes + "\n      y = Gather(w, row) }"));
    EXPECT_TRUE(model.module) << model.error;
    const train::IdLimit limit = model.module ? limitOf(model) : train::IdLimit();
    return std::pair(limit.lower, limit.upper);
  };
  constexpr int64_t none = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(limitsOf("row = Add(ids, two)"), std::pair(int64_t{-2}, int64_t{2})); // of the table's 4 rows
  EXPECT_EQ(limitsOf("row = Add(two, ids)"), std::pair(int64_t{-2}, int64_t{2}));
  EXPECT_EQ(limitsOf("row = Sub(ids, nine)"), std::pair(int64_t{9}, int64_t{13}));
  EXPECT_EQ(limitsOf("row = Sub(nine, ids)"), std::pair(int64_t{6}, int64_t{10}));
  EXPECT_EQ(limitsOf("a = Add(ids, one) row = Sub(a, two)"), std::pair(int64_t{1}, int64_t{5}));
  EXPECT_EQ(limitsOf("row = Add(ids, steps)"), std::pair(int64_t{-2}, int64_t{4})); // what some column allows
  EXPECT_EQ(limitsOf("zero = Sub(one, one) a = Add(ids, two) row = Max(a, zero)"), std::pair(none, int64_t{2}));
  EXPECT_EQ(limitsOf("a = Add(ids, two) row = Min(a, two)"), std::pair(int64_t{-2}, most));
  EXPECT_EQ(limitsOf("row = Min(ids, nine)"), std::pair(int64_t{0}, int64_t{4}));
}

TEST(ImportIntegers, ElementsAreTakenByData) {
  ImportedModel model(withWeights(R"(g (float[3, 3] x, int64[3, 2] ids) => (float[3, 2] y) {
    z = Gemm<transB = 1>(x, w)
    t = Transpose<perm = [1, 0]>(z)
    y = GatherElements<axis = 1>(t, ids) })"));
  ASSERT_TRUE(model.module) << model.error;
  auto pick = model.only<train::PickOp>();
  EXPECT_EQ(pick.getIds(), model.function("step").getArgument(1));
  EXPECT_TRUE(pick.getX().getDefiningOp<train::SliceOp>()); // three of four rows
}

TEST(ImportIntegers, FloatsAndQuotientsLoseTheirFractions) {
  ImportedModel model(withWeights(R"(g (float[2, 3] x, int64[2, 3] i) => (float[2, 4] y) {
    whole = Cast<to = 7>(x)
    half = Div(whole, i)
    back = Cast<to = 1>(half)
    y = Gemm<transB = 1>(back, w) })"));
  ASSERT_TRUE(model.module) << model.error;
  auto rounds = model.ops<train::RoundOp>();
  ASSERT_EQ(rounds.size(), 2u);
  for (train::RoundOp round : rounds)
    EXPECT_EQ(round.getRounding(), train::Rounding::TowardZero);
}

TEST(ImportIntegers, LabelsOfALossMayBeMoved) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  ImportedModel model(withWeights(R"(g (int64[2, 5] ids) => (float y) {
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    four = Constant<value_ints = [4]>()
    five = Constant<value_ints = [5]>()
    head = Slice(ids, zero, four, one)
    next = Slice(ids, one, five, one)
    words = Gather(w, head)
    scores = Transpose<perm = [0, 2, 1]>(words)
    y = SoftmaxCrossEntropyLoss<ignore_index = -100>(scores, next) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(limitOf(model).upper, 3);
  EXPECT_EQ(limitOf(model).ignored, std::optional<int64_t>(-100));
  model.only<train::SoftmaxCrossEntropyOp>();
}

TEST(ImportIntegers, ClassWeightsAreNoParameters) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  ImportedModel model(withWeights(R"(g (float[2, 3] x, int64[2] ids) => (float y) {
    scores = Gemm<transB = 1>(x, w)
    y = SoftmaxCrossEntropyLoss<reduction = "sum">(scores, ids, b) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_FALSE(model.variable("b"));
  EXPECT_EQ(limitOf(model).upper, 4);
  EXPECT_TRUE(model.ops<train::SoftmaxCrossEntropyOp>().empty());
}

TEST(ImportIntegers, RefusesIndicesThatNobodyChecks) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { j = Abs(x) y = Gather(x, j) }"),
              HasSubstr("node 'y' (Gather, opset 17): indices 'j' must be integers: an input of the model"));
  EXPECT_THAT(
      errorOf("g (float[2, 20000000] x, int64[2] i) => (float[2, 2] y) { j = Add(i, i) y = Gather<axis = 1>(x, j) }"),
      HasSubstr(
          "indices 'j' are computed, in float32, which holds whole numbers up to 16777216, but name 20000000 places"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[3] y) { i = Constant<value_ints = [1, 2, 0]>() y = Gather(x, i) }"),
              HasSubstr("node 'y' (Gather, opset 17): index 2 is outside the extent 2"));
}

TEST(ImportIntegers, RefusesWhatFloatsCannotDo) {
  EXPECT_THAT(
      errorOf("g (float[2, 3] x) => (float[2, 3] y) { i = Cast<to = 2>(x) y = Cast<to = 1>(i) }"),
      HasSubstr("casts of float32 activations to uint8 are not supported; cast to floats, bool, int64 or int32"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { y = Mod(x, x) }"),
              HasSubstr("takes the remainder of float32 values with fmod=0"));
}

TEST(ImportIntegers, RefusesMoreOfARowThanItHas) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 4] y) { k = Constant<value_ints = [4]>() y, i = TopK(x, k) }"),
              HasSubstr("node 'y' (TopK, opset 17): takes the best 4 of the 3 elements along axis 1"));
  EXPECT_THAT(errorOf("g (float[2, 3] x, int64[2] i) => (float[2, 3] y) { y = GatherElements(x, i) }"),
              HasSubstr("indices of shape [2] do not fit a tensor of shape [2, 3]"));
}

TEST(ImportIntegers, RefusesGridsThatDoNotFit) {
  EXPECT_THAT(errorOf("g (float[2, 3, 4, 4] x, float[2, 4, 4, 3] grid) => (float[2, 3, 4, 4] y) "
                      "{ y = GridSample(x, grid) }"),
              HasSubstr("node 'y' (GridSample, opset 17): needs an image"));
  EXPECT_THAT(errorOf("g (float[2, 3, 4, 4] x, float[2, 4, 4, 2] grid) => (float[2, 3, 4, 4] y) "
                      "{ y = GridSample<mode = \"area\">(x, grid) }"),
              HasSubstr("mode 'area' with padding_mode 'zeros' is unknown"));
}

/// The id that fills up sentences is often a class of the model's. Right answers are then not counted by the device, to
/// which a filled up place would be one.
TEST(ImportIntegers, IgnoresAClassOfTheModel) {
  TrainingSpec spec;
  spec.ignoreIndex = 1;
  const std::string model = "g (float[2, 3] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, w) }";
  const auto counts = [&] {
    ImportedModel imported(withWeights(model), spec);
    EXPECT_TRUE(imported.module) << imported.error;
    bool found = false;
    imported.module->walk([&](train::CountCorrectOp) { found = true; });
    return found;
  };
  EXPECT_FALSE(counts());
  spec.classWeights = {1, 2, 1, 1};
  EXPECT_FALSE(counts());
  spec.ignoreIndex = 4;
  EXPECT_TRUE(counts());
  spec.classWeights = {};
  EXPECT_TRUE(counts());
  spec.loss = AttachedLoss::Mse;
  EXPECT_THAT(errorOf(model, spec),
              HasSubstr("--ignore-index=4 goes with cross-entropies, ctc and bce-with-logits, not with --loss=mse"));
  spec.loss = AttachedLoss::None;
  EXPECT_THAT(errorOf(model, spec), HasSubstr("--ignore-index goes with an attached loss"));
}

/// Its cross-entropy is 0 whatever is learnt.
TEST(ImportIntegers, RefusesASingleClass) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 1] y, float[2, 4] z) { z = Gemm<transB = 1>(x, w) "
                      "y = ReduceMean<axes = [1]>(z) }"),
              HasSubstr("output 'y' has shape [2, 1], a single class, whose softmax-cross-entropy is always 0: choose "
                        "--loss=mse for a number, --loss=bce-with-logits for yes or no; the model has 'z', too"));
}

TEST(ImportIntegers, SaysThatTheClassesOfTokensAreLast) {
  const auto proto = withWeights("g (int64[2, 5] ids) => (float[2, 5, 3] y) { y = Gather(w, ids) }");
  TrainingSpec spec;
  const auto about = testing::Contains(HasSubstr("of 3 classes for each of 5 tokens it is --loss=token-cross-entropy"));
  EXPECT_THAT(ImportedModel(proto, spec).report.remarks, about);
  spec.loss = AttachedLoss::TokenCrossEntropy;
  EXPECT_THAT(ImportedModel(proto, spec).report.remarks, testing::Not(about));
}

/// The weights of an output that nothing trains are no longer trained in silence.
TEST(ImportIntegers, SaysWhichOutputsAreLeftOut) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 4] y, float[3, 2] z, int64[2] k) {
    y = MatMul(x, body)
    h = MatMul(x, head)
    z = Transpose(h)
    k = ArgMax<axis = 1, keepdims = 0>(y) })",
                          17);
  addInitializer(proto, "body.weight", {3, 4}, 0.1f, 0.01f);
  addInitializer(proto, "head.weight", {3, 3}, 0.1f, 0.01f);
  rename(*proto.mutable_graph(), "body", "body.weight");
  rename(*proto.mutable_graph(), "head", "head.weight");
  ImportedModel model(proto, {});
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(model.report.remarks, testing::Contains(HasSubstr(
                                        "outputs 'z', 'k' have no loss and are not predicted; 1 tensor that only they "
                                        "need stays as in the file: 'head.weight'; --loss OUTPUT=NAME")));
}

/// --loss does not go with --turn.
TEST(ImportIntegers, SaysHowATurnTrainsAnOutputThatIsLeftOut) {
  auto proto = parseModel(R"(g (float[2, 3] x) => (float[2, 4] y, float[2, 4] z, float[2, 4] w) {
    y = MatMul(x, body)
    z = MatMul(x, head)
    w = MatMul(x, tail) })",
                          17);
  addInitializer(proto, "body.weight", {3, 4}, 0.1f, 0.01f);
  addInitializer(proto, "head.weight", {3, 4}, 0.1f, 0.01f);
  rename(*proto.mutable_graph(), "body", "body.weight");
  rename(*proto.mutable_graph(), "head", "head.weight");
  addInitializer(proto, "tail", {3, 4}, 0.1f, 0.01f);
  TrainingSpec spec;
  ASSERT_TRUE(parseTurns({"one,loss=y=mse,train=body.*", "two,loss=z=mse,train=head.*"}, spec));
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(
      model.report.remarks,
      testing::Contains(HasSubstr("output 'w' has no loss and is not predicted; 1 tensor that only it needs stays as "
                                  "in the file: 'tail'; loss=OUTPUT=NAME in a --turn")));
}

} // namespace
} // namespace sluice
