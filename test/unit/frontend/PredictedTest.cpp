// SPDX-License-Identifier: Apache-2.0
// What programs predict and compare with, by the loss that a model brings along or that is attached with weights of
// classes.
#include "ir/TensorName.h"
#include "test/unit/frontend/ImportedModel.h"

#include <gmock/gmock.h>

using testing::ElementsAre;

namespace sluice {
namespace {

/// A graph that ends in `y`, [N, K] logits.
onnx::ModelProto withWeights(const std::string &graph, int opset = 17) {
  auto model = parseModel(graph, opset);
  addInitializer(model, "w", {4, 3}, 0.1f, 0.01f);
  addInitializer(model, "b", {4}, 0.2f);
  return model;
}

/// Of a model that ends in its own loss, what it gives besides, though only that needs a softmax.
TEST(Predicted, PredictsWhatIsNotTheLoss) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  ImportedModel model(withWeights(R"(g (float[2, 3] x, float[2, 4] wanted, float[2] scale)
      => (float loss, float[4] mean, int64[2] best, float[2, 4] p) {
    h = Gemm<transB = 1>(x, w, b)
    d = Sub(h, wanted)
    a = Abs(d)
    m = ReduceMean<axes = [1], keepdims = 0>(a)
    t = Mul(m, scale)
    loss = ReduceMean<keepdims = 0>(t)
    mean = ReduceMean<axes = [0], keepdims = 0>(h)
    best = ArgMax<axis = 1, keepdims = 0>(h)
    p = Softmax<axis = 1>(h) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
  mlir::ModuleOp module = *model.module;
  EXPECT_EQ(module->getAttrOfType<mlir::StringAttr>("train.target"), "wanted");
  EXPECT_EQ(module->getAttrOfType<mlir::ArrayAttr>("train.loss_inputs").size(), 2u);
  EXPECT_TRUE(module->hasAttr("train.probabilities") && module->hasAttr("train.other_mean"));
  auto results = model.function("evaluate").getResultTypes();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(mlir::cast<mlir::RankedTensorType>(results[1]).getShape().vec(), ElementsAre(2, 4));
  EXPECT_EQ(model.function("step").getResultTypes().size(), 1u);
}

/// Another output that needs weights which the loss does not train is not predicted.
TEST(Predicted, PredictsNothingUntrained) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::None;
  auto proto = withWeights(R"(g (float[2, 3] x) => (float loss, float[2, 4] other) {
    h = Gemm<transB = 1>(x, w, b)
    a = Abs(h)
    loss = ReduceMean<keepdims = 0>(a)
    other = MatMul(h, v) })");
  addInitializer(proto, "v", {4, 4}, 0, 0.1f);
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.function("evaluate").getResultTypes().size(), 1u);
}

TEST(Predicted, WeighsClasses) {
  TrainingSpec spec;
  spec.classWeights = {1, 0.5, 2, 0};
  const auto proto = withWeights("g (float[2, 3] x) => (float[2, 4] y) { y = Gemm<transB = 1>(x, w, b) }");
  ImportedModel model(proto, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.ops<train::SoftmaxCrossEntropyOp>().empty());
  EXPECT_EQ((*model.module)->getAttrOfType<mlir::StringAttr>("train.target"), "target");
  EXPECT_EQ(model.function("evaluate").getResultTypes().size(), 3u); // right answers are counted
  spec.classWeights = {1, 2};
  EXPECT_THAT(ImportedModel(proto, spec).error,
              testing::HasSubstr("--class-weights has 2 numbers, output 'y' has 4 classes"));
  spec.loss = AttachedLoss::Mse;
  EXPECT_THAT(ImportedModel(proto, spec).error, testing::HasSubstr("--class-weights goes with cross-entropies"));
  EXPECT_EQ(*parseClassWeights("0, 1.5,2"), (std::vector<double>{0, 1.5, 2}));
  for (const char *word : {"1,x", "1,-1", "0,0", "1,inf", "@nothing"})
    EXPECT_FALSE(parseClassWeights(word)) << word;
}

} // namespace
} // namespace sluice
