// SPDX-License-Identifier: Apache-2.0
// An exporter's numbers are held fixed, a module's parameters are trained: by names, values and readers.
#include "frontend/TensorRoles.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;
using train::Role;

TEST(NameScheme, TellsModulesFromTools) {
  for (const char *name :
       {"blocks.0.gamma", "logit_scale", "temperature", "act.weight", "attn_0.w_0", "coefficient1", "intercepts1",
        "dense/BiasAdd/ReadVariableOp:0", "gru_cell/split/ReadVariableOp/resource:0", "dense/kernel:0",
        "scale/mul/ReadVariableOp__345", "conv1_w_0", "skip.scalar", "stage_one.scale"})
    EXPECT_EQ(nameScheme(name), NameScheme::Module) << name;
  for (const char *name :
       {"onnx::Mul_123", "/attn/Mul_output_0", "const_fold_opt__593", "ln/Reshape:0", "217", "val_12",
        "p2o.pd_op.scale.1.0", "W0__457", "helper.slice.12", "auto.cast.1", "sqrt", "mul_3", "_to_copy_1", "full_like"})
    EXPECT_EQ(nameScheme(name), NameScheme::Tool) << name;
  for (const char *name : {"helper.constant.3", "p2o.pd_op.full.0.0", "/gelu/Constant_1_output_0", "ln/add/y:0",
                           "gelu/mul/x:0", "gru/zeros:0", "Const_1:0", "unity", "zero", "eps", "norm.eps", "one_1",
                           "Mu_Mulcst1", "c_lifted_tensor_0", "scalar_tensor_default_2", "_mulscalar0"})
    EXPECT_EQ(nameScheme(name), NameScheme::Constant) << name;
}

/// One product beside which the numbers of a case stand.
struct Case {
  onnx::ModelProto proto;
  TrainingSpec spec;

  explicit Case(const std::string &nodes) {
    proto = parseModel("g (float[4, 3] x) => (float[4, 3] y) { h = MatMul(x, fcw) " + nodes + " }");
    rename(*proto.mutable_graph(), "fcw", "fc.weight");
    addInitializer(proto, "fc.weight", {3, 3}, 0.1f, 0.1f);
    spec.loss = AttachedLoss::Mse;
  }
  Case &with(const std::string &name, const std::string &placeholder, const std::vector<int64_t> &shape, float value,
             float step = 0) {
    rename(*proto.mutable_graph(), placeholder, name);
    addInitializer(proto, name, shape, value, step);
    return *this;
  }
  /// Whether the tensor is trained.
  bool trains(const std::string &name) const {
    ImportedModel model(proto, spec);
    EXPECT_TRUE(model.module) << model.error;
    auto variable = model.module ? model.variable(name) : train::VariableOp();
    return variable && variable.getRole() == Role::Parameter;
  }
};

TEST(TensorRoles, SingleNumbersFollowTheirNames) {
  for (const char *op : {"Mul", "Add", "Div", "Sub"}) {
    const std::string node = "y = " + std::string(op) + "(h, n)";
    EXPECT_TRUE(Case(node).with("logit_scale", "n", {}, 2.5).trains("logit_scale")) << op;
    EXPECT_TRUE(Case(node).with("blocks.0.gamma", "n", {1}, 2.5).trains("blocks.0.gamma")) << op;
    EXPECT_FALSE(Case(node).with("onnx::Mul_12", "n", {}, 2.5).trains("onnx::Mul_12")) << op;
    EXPECT_FALSE(Case(node).with("gelu/Cast/x:0", "n", {}, 0.7071f).trains("gelu/Cast/x:0")) << op;
    EXPECT_FALSE(Case(node).with("unity", "n", {}, 1).trains("unity")) << op;
    EXPECT_FALSE(Case(node).with("p2o.pd_op.full.0.0", "n", {1}, 0.35f).trains("p2o.pd_op.full.0.0")) << op;
  }
}

TEST(TensorRoles, SlopesAreWeightsWhateverTheirName) {
  EXPECT_TRUE(Case("y = PRelu(h, n)").with("onnx::PRelu_12", "n", {1}, 0.25f).trains("onnx::PRelu_12"));
}

TEST(TensorRoles, ABiasOfOneColumnIsASingleNumber) {
  auto proto = parseModel("g (float[4, 2, 3] x) => (float[4, 2, 1] y) { h = MatMul(x, fcw) y = Add(n, h) }");
  rename(*proto.mutable_graph(), "fcw", "fc.weight");
  rename(*proto.mutable_graph(), "n", "onnx::Add_12");
  addInitializer(proto, "fc.weight", {3, 1}, 0.1f, 0.1f);
  addInitializer(proto, "onnx::Add_12", {1}, 0);
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.variable("onnx::Add_12").getRole(), Role::Parameter);
}

/// norm.floor has the name of a module's parameter, but stands where epsilons do.
TEST(TensorRoles, WhatIsAddedToAVarianceIsAnEpsilon) {
  const std::string norm = "m = ReduceMean<axes = [1]>(h) c = Sub(h, m) q = Mul(c, c) v = ReduceMean<axes = [1]>(q) "
                           "e = Add(v, n) s = Sqrt(e) y = Div(c, s)";
  EXPECT_FALSE(Case(norm).with("norm.floor", "n", {}, 1e-5f).trains("norm.floor"));
  EXPECT_FALSE(Case(norm).with("norm.floor", "n", {1, 1}, 1e-3f).trains("norm.floor"));
  EXPECT_TRUE(Case(norm).with("norm.floor", "n", {}, 0.5f).trains("norm.floor"));
  const std::string entropy = "p = Sigmoid(h) e = Add(n, p) y = Log(e)";
  EXPECT_FALSE(Case(entropy).with("loss.floor", "n", {}, 1e-7f).trains("loss.floor"));
}

TEST(TensorRoles, TheRootOfAWholeNumberIsFixed) {
  EXPECT_FALSE(Case("s = Sqrt(n) y = Div(h, s)").with("attn.width", "n", {}, 64).trains("attn.width"));
  EXPECT_TRUE(Case("s = Sqrt(n) y = Div(h, s)").with("attn.spread", "n", {}, 1.7f).trains("attn.spread"));
}

/// Equal everywhere: a fresh scale or bias, unless no module could have made it.
TEST(TensorRoles, UniformTensors) {
  EXPECT_TRUE(Case("y = Mul(h, n)").with("ln/Reshape:0", "n", {1, 3}, 1).trains("ln/Reshape:0"));
  EXPECT_TRUE(Case("y = Add(h, n)").with("onnx::Add_1", "n", {3}, 0).trains("onnx::Add_1"));
  EXPECT_TRUE(Case("y = Mul(h, n)").with("block.gamma", "n", {3}, 1e-6f).trains("block.gamma"));
  EXPECT_FALSE(Case("y = Mul(h, n)").with("onnx::Mul_1", "n", {3}, 0.3f).trains("onnx::Mul_1"));
  EXPECT_FALSE(Case("y = Add(h, n)").with("gru/zeros:0", "n", {4, 3}, 0).trains("gru/zeros:0"));
  EXPECT_FALSE(Case("y = Add(h, n)").with("onnx::Add_1", "n", {4, 3}, 0).trains("onnx::Add_1")); // as long as the batch
  EXPECT_FALSE(
      Case("s = MatMul(n, fcw) y = Add(h, s)").with("onnx::MatMul_1", "n", {4, 3}, 0).trains("onnx::MatMul_1"));
  EXPECT_TRUE(Case("y = MatMul(h, n)").with("onnx::MatMul_1", "n", {3, 3}, 0).trains("onnx::MatMul_1")); // LoRA's B
}

TEST(TensorRoles, ConstantsOfManyNumbersKeepTheirNames) {
  EXPECT_FALSE(Case("y = Add(h, n)").with("encode/add/y:0", "n", {3}, 0.1f, 0.2f).trains("encode/add/y:0"));
  EXPECT_TRUE(Case("y = Add(h, n)")
                  .with("fc/BiasAdd/ReadVariableOp:0", "n", {3}, 0.1f, 0.2f)
                  .trains("fc/BiasAdd/ReadVariableOp:0"));
}

TEST(TensorRoles, WeightsOfTheModelsOwnLossAreFixed) {
  auto model = [](const std::string &weight, const std::vector<int64_t> &shape) {
    auto proto = parseModel(R"(g (float[4, 3] x, float[4, 3] target) => (float loss) {
      h = MatMul(x, fcw)
      g = Mul(h, scale)
      p = Sigmoid(g)
      l = Log(p)
      t = Mul(target, l)
      w = Mul(t, n)
      n1 = Neg(w)
      loss = ReduceMean<keepdims = 0>(n1) })");
    rename(*proto.mutable_graph(), "n", weight);
    rename(*proto.mutable_graph(), "fcw", "fc.weight");
    rename(*proto.mutable_graph(), "scale", "head.scale");
    addInitializer(proto, "fc.weight", {3, 3}, 0.1f, 0.1f);
    addInitializer(proto, "head.scale", {3}, 1, 0.1f);
    addInitializer(proto, weight, shape, 3, 0.5f);
    return proto;
  };
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{}, {3}}) {
    ImportedModel imported(model("loss.pos_weight", shape), spec);
    ASSERT_TRUE(imported.module) << imported.error;
    auto weight = imported.variable("loss.pos_weight");
    EXPECT_TRUE(!weight || weight.getRole() == Role::Constant);
    EXPECT_EQ(imported.variable("head.scale").getRole(), Role::Parameter);
    EXPECT_THAT(imported.report.remarks[0], HasSubstr("1 is held fixed (1 by rule: 'loss.pos_weight')"));
  }
}

/// Arithmetic on ids: an integer of the file, as a number, is no parameter.
TEST(TensorRoles, IntegersAreFixed) {
  auto proto = parseModel(R"(g (int64[4, 3] ids) => (float[4, 3, 2] y) {
    wrapped = Add(ids, size)
    y = Gather(table, wrapped) })");
  addInitializer(proto, "table", {5, 2}, 0.1f, 0.1f);
  onnx::TensorProto *size = proto.mutable_graph()->add_initializer();
  size->set_name("size");
  size->set_data_type(onnx::TensorProto::INT64);
  size->add_int64_data(-5);
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  for (auto variable : model.module->getOps<train::VariableOp>())
    EXPECT_EQ(variable.getRole() == Role::Parameter, variable.getSymName() == "table") << variable.getSymName().str();
}

/// A trip count, or the condition of a loop, may share its number with the state that the loop begins with.
TEST(TensorRoles, ASharedNumberStillCountsTrips) {
  auto proto = parseModel(R"(g (float[4, 3] x) => (float[4, 3] y) {
    h = MatMul(x, fcw)
    trips = Constant<value = int64 {3}>()
    again = Less(zero, limit)
    start = Mul(h, zero)
    y = Loop(trips, again, start)<body = b (int64 i, bool c, float[4, 3] s) => (bool go, float[4, 3] next) {
      go = Identity(c)
      next = Add(s, h)
    }> })");
  rename(*proto.mutable_graph(), "fcw", "fc.weight");
  addInitializer(proto, "fc.weight", {3, 3}, 0.1f, 0.1f);
  addInitializer(proto, "zero", {}, 0);
  addInitializer(proto, "limit", {}, 5);
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  ImportedModel model(proto, spec);
  EXPECT_TRUE(model.module) << model.error;
}

} // namespace
} // namespace sluice
