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
  ImportedModel model(proto);
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

TEST(ImportIntegers, RefusesIndicesThatNobodyChecks) {
  EXPECT_THAT(errorOf("g (float[2, 3] x, int64[2] i) => (float[2, 3] y) { j = Add(i, i) y = Gather(x, j) }"),
              HasSubstr("node 'y' (Gather, opset 17): indices 'j' must be integers: an input of the model"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[3] y) { i = Constant<value_ints = [1, 2, 0]>() y = Gather(x, i) }"),
              HasSubstr("node 'y' (Gather, opset 17): index 2 is outside the extent 2"));
}

TEST(ImportIntegers, RefusesWhatFloatsCannotDo) {
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { i = Cast<to = 7>(x) y = Cast<to = 1>(i) }"),
              HasSubstr("casts of float32 activations to int64 are not supported"));
  EXPECT_THAT(errorOf("g (int64[2, 3] x) => (float[2, 3] y) { i = Div(x, x) y = Cast<to = 1>(i) }"),
              HasSubstr("whole-number division of data is not supported"));
}

TEST(ImportIntegers, RefusesToIgnoreAClass) {
  TrainingSpec spec;
  spec.ignoreIndex = 1;
  const std::string model = "g (float[2, 3] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, w) }";
  EXPECT_THAT(errorOf(model, spec), HasSubstr("--ignore-index=1 is one of the 4 classes of output 'y'"));
  spec.loss = AttachedLoss::Mse;
  EXPECT_THAT(errorOf(model, spec), HasSubstr("--ignore-index=1 goes with cross-entropies, not with --loss=mse"));
  spec.loss = AttachedLoss::None;
  EXPECT_THAT(errorOf(model, spec), HasSubstr("--ignore-index goes with an attached loss"));
}

} // namespace
} // namespace sluice
