// SPDX-License-Identifier: Apache-2.0
// What single exporters write beside parameters, by their names, values and readers: masks, halves of biases, buffers,
// steps before an estimator, merged layers.
#include "frontend/TensorRoles.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using train::Role;

constexpr float hiding = -1e4f;

/// A product h [4,3] of x, and nodes that make y [4,3] of it.
onnx::ModelProto modelOf(const std::string &nodes, const std::string &producer = "") {
  auto model = parseModel("g (float[4, 3] x) => (float[4, 3] y) { h = MatMul(x, coef) " + nodes + " }");
  addInitializer(model, "coef", {3, 3}, 0.1f, 0.1f);
  model.set_producer_name(producer);
  return model;
}

void addValues(onnx::ModelProto &model, const std::string &name, const std::vector<int64_t> &shape,
               const std::vector<float> &values) {
  addInitializer(model, name, shape);
  auto *tensor = model.mutable_graph()->mutable_initializer(model.graph().initializer_size() - 1);
  tensor->set_raw_data(std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)));
}

TrainingSpec squares() {
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  return spec;
}

/// Whether a tensor of this name and these values, at "n" in the nodes, is trained.
bool trains(const std::string &nodes, const std::string &name, const std::vector<int64_t> &shape,
            const std::vector<float> &values, const std::string &producer = "") {
  auto proto = modelOf(nodes, producer);
  rename(*proto.mutable_graph(), "n", name);
  addValues(proto, name, shape, values);
  ImportedModel model(proto, squares());
  EXPECT_TRUE(model.module) << model.error;
  auto variable = model.module ? model.variable(name) : train::VariableOp();
  return variable && variable.getRole() == Role::Parameter;
}

TEST(ExporterRoles, MasksAreHeldWhateverTheirName) {
  for (const char *name : {"const_fold_opt__911", "p2o.pd_op.triu.0.0", "prune.weight_mask", "onnx::Mul_3"}) {
    EXPECT_FALSE(trains("y = Mul(h, n)", name, {3}, {1, 0, 1})) << name;
    EXPECT_FALSE(trains("y = Add(h, n)", name, {3}, {0, hiding, 0})) << name;
    EXPECT_FALSE(trains("y = Add(h, n)", name, {3}, {-100, 0, -100})) << name;
  }
  EXPECT_FALSE(trains("w = Mul(n, coef) y = MatMul(h, w)", "mask", {3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}));
}

/// A fresh LSTM's bias is zeros, and ones for one gate.
TEST(ExporterRoles, WhatOnlyLooksLikeAMaskIsTrained) {
  EXPECT_TRUE(trains("y = Add(h, n)", "lstm_cell.bias", {3}, {0, 1, 0}));
  EXPECT_TRUE(trains("y = Mul(h, n)", "block.gamma", {3}, {1, 1, 1}));
  EXPECT_TRUE(trains("y = Mul(h, n)", "block.gamma", {3}, {1, 0, 0.5f}));
  EXPECT_TRUE(trains("y = Add(h, n)", "fc.bias", {3}, {0, -0.5f, 0}));
  EXPECT_TRUE(trains("y = Add(h, n)", "fc.bias", {3}, {0, hiding, 2 * hiding}));
  EXPECT_TRUE(trains("y = MatMul(h, n)", "fc.weight", {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(ExporterRoles, ABiasOfOneChannelIsASingleNumber) {
  const std::string image = "s = Constant<value_ints = [4, 1, 1, 3]>() i = Reshape(h, s) ",
                    back = " t = Constant<value_ints = [4, 3]>() y = Reshape(a, t)";
  for (const char *convolution :
       {"c = Conv(i, k) a = Add(c, n)", "c = ConvTranspose(i, k) d = Identity(c) a = Add(n, d)"}) {
    auto proto = modelOf(image + convolution + back);
    rename(*proto.mutable_graph(), "n", "const_fold_opt__12");
    addInitializer(proto, "k", {1, 1, 1, 1}, 0.5f);
    addInitializer(proto, "const_fold_opt__12", {1, 1, 1, 1}, 0);
    ImportedModel model(proto, squares());
    ASSERT_TRUE(model.module) << model.error;
    EXPECT_EQ(model.variable("const_fold_opt__12").getRole(), Role::Parameter) << convolution;
  }
  EXPECT_FALSE(trains("y = Add(h, n)", "const_fold_opt__12", {1, 1}, {0}));
}

/// Paddle's parameters end in .w_0 and .b_0; Keras has no parameter where it has no scale.
TEST(ExporterRoles, NamesOfBuffers) {
  EXPECT_FALSE(trains("y = Sub(h, n)", "eager_tmp_0", {3}, {0.4f, 0.5f, 0.6f}));
  EXPECT_FALSE(trains("y = MatMul(h, n)", "generated_tensor_1", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(trains("y = Mul(h, n)", "norm/batchnorm/Rsqrt:0", {3}, {0.4f, 0.5f, 0.6f}));
  EXPECT_FALSE(trains("y = Mul(h, n)", "activation_1/beta:0", {}, {1}));
  EXPECT_TRUE(trains("y = Add(h, n)", "norm_1/beta:0", {3}, {0, 0, 0}));
  EXPECT_FALSE(trains("y = Mul(h, n)", "net/normalization_1/truediv:0", {3}, {0.4f, 0.5f, 0.6f}));
  EXPECT_TRUE(trains("y = Mul(h, n)", "norm/batchnorm/mul:0", {3}, {0.4f, 0.5f, 0.6f}));
}

/// Keras writes its PReLU out, with slopes of other sign.
TEST(ExporterRoles, SlopesThatAreAllEqualAreTrained) {
  const std::string slope = "m = Neg(h) b = Relu(m) s = Mul(b, n) p = Relu(h) y = Add(p, s)";
  EXPECT_TRUE(trains(slope, "act/Neg:0", {3}, {-0.25f, -0.25f, -0.25f}, "tf2onnx"));
  EXPECT_FALSE(trains("m = Relu(h) y = Mul(m, n)", "act/Neg:0", {3}, {-0.25f, -0.25f, -0.25f}, "tf2onnx"));
}

/// A GRU's initial state, which shares its zero with the bound of a comparison.
TEST(ExporterRoles, AnExpandedNumberIsNoWeight) {
  EXPECT_FALSE(trains("s = Constant<value_ints = [4, 3]>() z = Expand(n, s) r = MatMul(z, coef) y = Add(h, r)",
                      "const_fold_opt__759", {}, {0}, "tf2onnx"));
}

/// Principal components, variances and helpers stay; a file of another producer names what it likes.
TEST(ExporterRoles, StepsBeforeAnEstimatorAreHeld) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_FALSE(trains("y = MatMul(h, n)", "transform_matrix", {3, 3}, matrix, "skl2onnx"));
  EXPECT_FALSE(trains("y = Mul(h, n)", "num_classes", {}, {4}, "skl2onnx"));
  EXPECT_TRUE(trains("y = MatMul(h, n)", "coefficient1", {3, 3}, matrix, "skl2onnx"));
  EXPECT_TRUE(trains("y = Add(h, n)", "intercepts1", {1, 3}, {0, 0, 0}, "skl2onnx"));
  EXPECT_TRUE(trains("y = MatMul(h, n)", "transform_matrix", {3, 3}, matrix));
}

/// TensorFlow's LSTM has one bias, its exporter writes two, the second of zeros.
TEST(ExporterRoles, HalfOfATensorFlowBiasIsHeld) {
  auto sums = [](const std::string &producer, float second, std::vector<std::string> *remarks = nullptr) {
    auto proto = parseModel("g (float[4, 4, 3] x) => (float[4, 1, 4, 1] y) { y = LSTM<hidden_size = 1>(x, w, r, b) }");
    proto.set_producer_name(producer);
    addInitializer(proto, "w", {1, 4, 3}, 0.1f, 0.1f);
    addInitializer(proto, "r", {1, 4, 1}, 0.1f, 0.1f);
    addValues(proto, "b", {1, 8}, {0.1f, 0.2f, 0.3f, 0.4f, 0, 0, 0, second});
    ImportedModel imported(proto, squares());
    EXPECT_TRUE(imported.module) << imported.error;
    if (remarks)
      *remarks = imported.report.remarks;
    return imported.module ? imported.ops<train::AddOp>().size() : 9;
  };
  std::vector<std::string> remarks;
  EXPECT_EQ(sums("tf2onnx", 0, &remarks), 0u) << "no second half is added";
  EXPECT_THAT(remarks, Contains(HasSubstr("the zeros are held: 'b'")));
  EXPECT_EQ(sums("tf2onnx", 0.1f), 1u);
  EXPECT_EQ(sums("pytorch", 0), 1u) << "PyTorch trains both";
}

TEST(ExporterRoles, SaysWhatFoldingChanged) {
  auto proto = modelOf("a = Mul(h, s) b = Add(a, o) y = Mul(b, e)", "tf2onnx");
  rename(*proto.mutable_graph(), "s", "net/bn_1/batchnorm/mul:0");
  rename(*proto.mutable_graph(), "o", "net/bn_1/batchnorm/sub:0");
  rename(*proto.mutable_graph(), "e", "net/token/BroadcastTo:0");
  addInitializer(proto, "net/bn_1/batchnorm/mul:0", {3}, 1, 0.1f);
  addInitializer(proto, "net/bn_1/batchnorm/sub:0", {3}, 1, 0.1f);
  addValues(proto, "net/token/BroadcastTo:0", {4, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
  ImportedModel model(proto, squares());
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(model.report.remarks, Contains(HasSubstr("merged 1 BatchNormalization layer")));
  EXPECT_THAT(model.report.remarks,
              Contains(HasSubstr("'net/token/BroadcastTo:0' repeats a row for each sample of the batch")));
  ImportedModel plain(modelOf("y = Relu(h)"), squares());
  EXPECT_THAT(plain.report.remarks, Not(Contains(HasSubstr("merged"))));
}

} // namespace
} // namespace sluice
