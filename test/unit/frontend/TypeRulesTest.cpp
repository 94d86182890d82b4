// SPDX-License-Identifier: Apache-2.0
// Models that are refused for the types of their values, for outputs without a gradient, and for flags that name
// nothing.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

std::string errorOf(const std::string &graph) { return ImportedModel(parseModel(graph)).error; }

/// Expressions that would backtrack for minutes, and names that a matcher with a stack would not take.
TEST(TypeRules, NamesAreMatchedInLinearTime) {
  auto proto = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Mul(x, w) }");
  std::string name(300000, 'w');
  proto.mutable_graph()->mutable_node(0)->set_input(1, name);
  addInitializer(proto, name, {3});
  TrainingSpec spec;
  spec.freeze = {{"(v|w)*x", true}, {"((w+)+)+v", true}};
  EXPECT_THAT(ImportedModel(proto, spec).error,
              HasSubstr("none of the 2 regular expressions of --freeze matches the whole name of a tensor"));
  spec.freeze = {"(?!head).*"};
  EXPECT_THAT(ImportedModel(proto, spec).error, HasSubstr("there is no look-ahead"));
}

TEST(TypeRules, OperandsOfTwoTypes) {
  EXPECT_THAT(errorOf("g (float[2, 3] x, int64[2, 3] i) => (float[2, 3] y) { y = Add(x, i) }"),
              HasSubstr("node 'y' (Add, opset 17) reads 'x' of float32 and 'i' of int64, which must have one type"));
  EXPECT_THAT(errorOf("g (float[2, 3] x, int64[2, 3] i) => (float[2, 3] y) { h = Cast<to = 6>(i) y = Mul(h, i) }"),
              HasSubstr("reads 'h' of int32 and 'i' of int64"));
  EXPECT_THAT(errorOf("g (float[2, 3] x) => (float[2, 3] y) { b = Greater(x, x) y = Add(b, b) }"),
              HasSubstr("node 'y' (Add, opset 17) reads 'b' of bool, which the op does not take"));
  EXPECT_THAT(errorOf(R"(g (float[2, 3] x, int64[2, 3] i) => (float[2, 3] y) {
                c = Constant<value = bool {1}>()
                y = If(c)<then_branch = t () => (float[2, 3] a) { a = Sub(x, i) },
                          else_branch = e () => (float[2, 3] b) { b = Relu(x) }> })"),
              HasSubstr("node 'a' (Sub, opset 17) reads 'x' of float32 and 'i' of int64"));
}

TEST(TypeRules, OutputsWithoutAGradient) {
  TrainingSpec spec;
  auto labels = parseModel(R"(g (float[2, 3] x) => (int64[2] label, float[2, 3] scores) {
    scores = Gemm(x, w)
    label = ArgMax<axis = 1, keepdims = 0>(scores) })");
  addInitializer(labels, "w", {3, 3}, 0.1f, 0.1f);
  for (AttachedLoss loss : {AttachedLoss::Mse, AttachedLoss::BceWithLogits, AttachedLoss::SoftmaxCrossEntropy}) {
    spec.loss = loss;
    EXPECT_THAT(ImportedModel(labels, spec).error,
                HasSubstr("output 'label' consists of integers or truth values, through which no gradient reaches a "
                          "parameter; choose another value by --output=NAME of 'scores'"));
  }
  spec.output = "scores";
  ImportedModel chosen(labels, spec);
  EXPECT_TRUE(chosen.module) << chosen.error;
  EXPECT_EQ(chosen.ops<train::TopOp>().size(), 0u);
  // Answers of yes or no, and rounded ones.
  for (const char *answer : {"bool[2, 3] y) { scores = Gemm(x, w) zero = Constant<value = float {0.0}>() "
                             "y = Greater(scores, zero) }",
                             "int64[2, 3] y) { scores = Gemm(x, w) y = Cast<to = 7>(scores) }"}) {
    auto proto = parseModel(std::string("g (float[2, 3] x) => (") + answer);
    addInitializer(proto, "w", {3, 3}, 0.1f, 0.1f);
    TrainingSpec numbers;
    numbers.loss = AttachedLoss::Mse;
    EXPECT_THAT(ImportedModel(proto, numbers).error,
                HasSubstr("output 'y' consists of integers or truth values, through which no gradient reaches"));
  }
  spec.output = "nothing";
  EXPECT_THAT(ImportedModel(labels, spec).error,
              HasSubstr("--output=nothing names no value of the graph; the model's outputs are 'label', 'scores'"));
}

} // namespace
} // namespace sluice
