// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, RNN: what becomes of directions, layouts and results, and the forms that are refused.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

/// Weights of an LSTM of 2 units for 3 inputs, w and r, of a GRU, v and q, of both directions of an RNN, both and
/// inner, and biases.
onnx::ModelProto withWeights(const std::string &graph, int opset = 17) {
  auto model = parseModel(graph, opset);
  addInitializer(model, "w", {1, 8, 3}, 0.1f, 0.01f);
  addInitializer(model, "r", {1, 8, 2}, 0.1f, 0.01f);
  addInitializer(model, "b", {1, 16}, 0.1f, 0.01f);
  addInitializer(model, "p", {1, 6}, 0.1f, 0.01f);
  addInitializer(model, "v", {1, 6, 3}, 0.1f, 0.01f);
  addInitializer(model, "q", {1, 6, 2}, 0.1f, 0.01f);
  addInitializer(model, "d", {1, 12}, 0.1f, 0.01f);
  addInitializer(model, "both", {2, 2, 3}, 0.1f, 0.01f);
  addInitializer(model, "inner", {2, 2, 2}, 0.1f, 0.01f);
  return model;
}

/// Of results whose dimension 1, the directions, holds no classes.
TrainingSpec ofNumbers() {
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  return spec;
}

/// Of a node that reads x, four steps of four samples, and gives y.
std::string errorOf(const std::string &node) {
  return ImportedModel(withWeights("g (float[4, 4, 3] x, int32[4] n) => (float[4, 1, 4, 2] y) { " + node + " }"),
                       ofNumbers())
      .error;
}

TEST(ImportRecurrence, OneProductForAllSteps) {
  ImportedModel model(
      withWeights("g (float[4, 4, 3] x) => (float[4, 1, 4, 2] y) { y = LSTM<hidden_size = 2>(x, w, r, b) }"),
      ofNumbers());
  ASSERT_TRUE(model.module) << model.error;
  auto op = model.only<train::RecurrenceOp>();
  EXPECT_EQ(op.getCell(), train::Cell::Lstm);
  EXPECT_EQ(extents(op.getGates()), (std::vector<int64_t>{4, 4, 8}));
  EXPECT_EQ(extents(model.only<train::MatmulOp>().getY()), (std::vector<int64_t>{16, 8}));
  EXPECT_TRUE(model.ops<train::SliceOp>().size() == 2) << "the halves of the bias";
  EXPECT_EQ(model.variable("r").getRole(), train::Role::Parameter);
}

TEST(ImportRecurrence, OnlyResultsThatAreReadExist) {
  ImportedModel model(withWeights("g (float[4, 4, 3] x) => (float[4, 2] y) { h, l, c = LSTM<hidden_size = 2>(x, w, r) "
                                  "zero = Constant<value_ints = [0]>() y = Squeeze(c, zero) }"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.only<train::RecurrenceOp>().getHidden().use_empty());
  EXPECT_TRUE(model.ops<train::SliceOp>().empty());
}

TEST(ImportRecurrence, BothDirectionsAndTheBatchInFront) {
  ImportedModel model(
      withWeights("g (float[4, 5, 3] x) => (float[4, 5, 2, 2] y) { y, l = RNN<hidden_size = 2, "
                  "direction = \"bidirectional\", layout = 1, activations = [\"Relu\", \"tanh\"]>(x, both, inner) }"));
  ASSERT_TRUE(model.module) << model.error;
  auto ops = model.ops<train::RecurrenceOp>();
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].getCell(), train::Cell::RnnRelu);
  EXPECT_FALSE(ops[0].getReverse());
  EXPECT_EQ(ops[1].getCell(), train::Cell::RnnTanh);
  EXPECT_TRUE(ops[1].getReverse());
  EXPECT_EQ(extents(ops[0].getGates()), (std::vector<int64_t>{5, 4, 2}));
}

TEST(ImportRecurrence, ResettingBehindTheProductHasABiasOfItsOwn) {
  ImportedModel model(withWeights(
      "g (float[4, 4, 3] x) => (float[4, 2] y) { h, l = GRU<hidden_size = 2, linear_before_reset = 1>(x, v, q, d) "
      "zero = Constant<value_ints = [0]>() y = Squeeze(l, zero) }"));
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(extents(model.only<train::RecurrenceOp>().getExtra()), (std::vector<int64_t>{2}));
}

TEST(ImportRecurrence, SequencesEndWhereTheirLengthsSay) {
  const std::string head = "g (float[4, 4, 3] x, int32[4] n) => (float[4, 2, 4, 2] y) { y, last = ";
  ImportedModel same(withWeights(head + "RNN<hidden_size = 2, direction = \"bidirectional\">(x, both, inner) }"));
  ASSERT_TRUE(same.module) << same.error;
  EXPECT_TRUE(same.ops<train::CompareOp>().empty());
  ImportedModel data(withWeights(head + "RNN<hidden_size = 2, direction = \"bidirectional\">(x, both, inner, , n) }"));
  ASSERT_TRUE(data.module) << data.error;
  EXPECT_EQ(train::idLimitOf(*data.module, "n").upper, 5);
  for (train::RecurrenceOp op : data.ops<train::RecurrenceOp>())
    EXPECT_FALSE(op.getReverse()) << "sequences are turned around instead";
  EXPECT_EQ(data.ops<train::EmbeddingOp>().size(), 2u) << "of the inputs, and of the states back again";
}

TEST(ImportRecurrence, LengthsMustFit) {
  EXPECT_EQ(errorOf("all = Constant<value = int32[4] {4, 4, 4, 4}>() y = LSTM<hidden_size = 2>(x, w, r, b, all)"), "");
  EXPECT_THAT(errorOf("some = Constant<value = int32[4] {4, 4, 3, 4}>() y = LSTM<hidden_size = 2>(x, w, r, b, some)"),
              "");
  EXPECT_THAT(errorOf("some = Constant<value = int32[4] {4, 4, 5, 4}>() y = LSTM<hidden_size = 2>(x, w, r, b, some)"),
              HasSubstr("node 'y' (LSTM, opset 17): has sequences of 5 steps, outside 0 to 4"));
  EXPECT_THAT(errorOf("few = Constant<value = int32[2] {4, 4}>() y = LSTM<hidden_size = 2>(x, w, r, b, few)"),
              HasSubstr("sequence_lens must be 4 integers, has shape [2]"));
  EXPECT_EQ(errorOf("y = LSTM<hidden_size = 2>(x, w, r, b, n)"), "");
  EXPECT_THAT(errorOf("m = ReduceSum(x) y = LSTM<hidden_size = 2>(x, w, r, b, m)"),
              HasSubstr("sequence_lens must be integers"));
}

TEST(ImportRecurrence, CellsWithoutAKernelAreUnrolled) {
  const std::string forms[] = {"LSTM<hidden_size = 2, clip = 1.5>(x, w, r)",
                               "LSTM<hidden_size = 2, input_forget = 1>(x, w, r)",
                               "LSTM<hidden_size = 2>(x, w, r, b, , , , p)",
                               "LSTM<hidden_size = 2, activations = [\"HardSigmoid\", \"Relu\", \"Tanh\"]>(x, w, r)"};
  for (const std::string &form : forms) {
    ImportedModel model(withWeights("g (float[4, 4, 3] x) => (float[4, 1, 4, 2] y) { y = " + form + " }"), ofNumbers());
    ASSERT_TRUE(model.module) << form << ": " << model.error;
    EXPECT_TRUE(model.ops<train::RecurrenceOp>().empty());
    EXPECT_EQ(model.ops<train::MatmulOp>().size(), 5u) << form; // of all inputs, and of each step's state
  }
}

TEST(ImportRecurrence, RefusesFormsByName) {
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 2, clip = -1.5>(x, w, r)"), HasSubstr("clip -1.5"));
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 2>(x, w, r, b, , , , w)"),
              HasSubstr("peepholes of shape [1, 8, 3] do not fit, needs [1, 6]"));
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 2, layout = 2>(x, w, r)"), HasSubstr("layout is 2, must be 0 or 1"));
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 2, direction = \"back\">(x, w, r)"), HasSubstr("direction 'back'"));
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 2, activations = [\"Sigmoid\", \"Relu6\", \"Tanh\"]>(x, w, r)"),
              HasSubstr("activation 'Relu6' is none of the standard's: affine, elu, hardsigmoid"));
  EXPECT_THAT(errorOf("y = RNN<hidden_size = 2, activations = [\"Elu\"], activation_alpha = [-1.0]>(x, both, inner)"),
              HasSubstr("alpha of its activation Elu is -1"));
  EXPECT_THAT(errorOf("y = RNN<hidden_size = 2, activations = [\"Tanh\", \"Tanh\"]>(x, w, r)"),
              HasSubstr("has 2 activations, needs 1"));
}

TEST(ImportRecurrence, RefusesWhatDoesNotFit) {
  EXPECT_THAT(errorOf("y = LSTM<hidden_size = 3>(x, w, r)"),
              HasSubstr("hidden_size is 3, the recurrent weight has 2 units"));
  EXPECT_THAT(errorOf("y = LSTM(x, w, q)"), HasSubstr("do not fit 1 direction(s) of 4 gate(s)"));
  EXPECT_THAT(errorOf("y = GRU<direction = \"bidirectional\">(x, v, q)"),
              HasSubstr("do not fit 2 direction(s) of 3 gate(s)"));
  EXPECT_THAT(errorOf("y = LSTM(x, w, r, p)"), HasSubstr("bias of shape [1, 6] does not fit, needs [1, 16]"));
  EXPECT_THAT(errorOf("y = LSTM(x, w, r, b, , w)"),
              HasSubstr("initial states of shape [1, 8, 3] do not fit, needs [1, 4, 2]"));
}

/// As TensorFlow's exporter writes the backward layer of Bidirectional, with lengths that the shape gives.
TEST(ImportRecurrence, SequencesBackToFront) {
  auto whole = [](const std::string &node) {
    auto proto = parseModel("g (float[4, 5, 3] x, int64[4] n) => (float[4, 5, 3] y) { h = MatMul(x, w) " + node + " }");
    addInitializer(proto, "w", {3, 3}, 0.1f, 0.1f);
    TrainingSpec spec;
    spec.loss = AttachedLoss::Mse;
    return std::make_unique<ImportedModel>(proto, spec);
  };
  auto full = whole("l = Constant<value = int64[4] {5, 5, 5, 5}>() "
                    "y = ReverseSequence<batch_axis = 0, time_axis = 1>(h, l)");
  ASSERT_TRUE(full->module) << full->error;
  EXPECT_TRUE(full->ops<train::SelectOp>().empty()) << "every sequence has all steps";
  EXPECT_EQ(extents(full->only<train::EmbeddingOp>().getY()), (std::vector<int64_t>{5, 4, 3}));
  auto own = whole("y = ReverseSequence<batch_axis = 0, time_axis = 1>(h, n)");
  ASSERT_TRUE(own->module) << own->error;
  EXPECT_EQ(extents(own->only<train::EmbeddingOp>().getY()), (std::vector<int64_t>{20, 3}));
  EXPECT_THAT(whole("l = Constant<value = int64[4] {5, 5, 6, 5}>() "
                    "y = ReverseSequence<batch_axis = 0, time_axis = 1>(h, l)")
                  ->error,
              HasSubstr("sequences of 6 steps, outside 0 to 5"));
  EXPECT_THAT(whole("y = ReverseSequence<batch_axis = 0, time_axis = 2>(h, n)")->error,
              HasSubstr("time_axis 2 and batch_axis 0 of [4, 5, 3] must be the first two dimensions"));
  EXPECT_THAT(whole("y = ReverseSequence<batch_axis = 0, time_axis = 1>(h, h)")->error, HasSubstr("must be integers"));
}

} // namespace
} // namespace sluice
