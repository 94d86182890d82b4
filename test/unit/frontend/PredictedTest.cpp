// SPDX-License-Identifier: Apache-2.0
// What programs predict and compare with, by the loss that a model brings along or that is attached with weights of
// classes.
#include "frontend/HostTensor.h"
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
  const auto outputs = train::outputsOf(module);
  ASSERT_EQ(outputs.size(), 2u); // the loss and what has numbers for each sample
  EXPECT_EQ(outputs[0].getLoss(), "none");
  EXPECT_EQ(outputs[1].getName(), "p");
  EXPECT_EQ(outputs[1].getTarget(), "wanted");
  EXPECT_EQ(outputs[1].getKept(), 0);
  EXPECT_EQ(module->getAttrOfType<mlir::ArrayAttr>("train.loss_inputs").size(), 2u);
  EXPECT_TRUE(outputs[1].getProbabilities() && module->hasAttr("train.other_mean"));
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
  EXPECT_EQ(train::outputsOf(*model.module)[0].getTarget(), "target");
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

/// For each class of dimension 1 or the last one, whichever has as many, or one for all.
TEST(Predicted, WeighsAnswersOfYes) {
  TrainingSpec spec;
  ASSERT_TRUE(parseLosses({"bce-with-logits,pos-weight=1,2.5,3,4,ignore-index=9"}, spec));
  EXPECT_EQ(spec.losses[0].posWeights, (std::vector<double>{1, 2.5, 3, 4}));
  EXPECT_EQ(spec.losses[0].ignoreIndex, 9);
  const auto shapeIn = [&](const std::string &graph) {
    auto proto = parseModel("g " + graph);
    addInitializer(proto, "v", {3, 4}, 0, 0.1f);
    ImportedModel model(proto, spec);
    if (!model.module)
      return model.error;
    auto weights = model.ops<train::BceWithLogitsOp>()[0].getPosWeight().getType();
    return shapeText(mlir::cast<mlir::RankedTensorType>(weights).getShape().vec());
  };
  EXPECT_EQ(shapeIn("(float[2, 3] x) => (float[2, 4] y) { y = MatMul(x, v) }"), "[1, 4]");
  EXPECT_EQ(shapeIn("(float[2, 6, 5, 3] x) => (float[2, 6, 5, 4] y) { y = MatMul(x, v) }"), "[1, 1, 1, 4]");
  EXPECT_EQ(shapeIn("(float[2, 5, 3] x) => (float[2, 4, 5] y) { m = MatMul(x, v) y = Transpose<perm = [0, 2, 1]>(m) }"),
            "[1, 4, 1]");
  EXPECT_THAT(shapeIn("(float[2, 4, 3] x) => (float[2, 4, 4] y) { y = MatMul(x, v) }"),
              testing::HasSubstr("--loss=bce-with-logits,pos-weight= has 4 numbers, output 'y' has shape [2, 4, 4], as "
                                 "many in dimension 1 as in the last"));
  spec = {};
  ASSERT_TRUE(parseLosses({"bce-with-logits,pos-weight=2:0.5"}, spec));
  EXPECT_THAT(
      shapeIn("(float[2, 3] x) => (float[2, 4] y) { y = MatMul(x, v) }"),
      testing::HasSubstr("has 2 numbers, output 'y' has shape [2, 4], whose dimension 1 or last has the classes"));
  for (const char *word : {"1,-1", "0", "nan", "1,inf", "1e-60", "", "x", "@nothing"})
    EXPECT_FALSE(parsePosWeights(word)) << word;
}

constexpr char twoHeads[] = R"(g (float[2, 3] x) => (float[2, 4] y, float[2, 3] z, float[2, 4] h) {
    h = Gemm<transB = 1>(x, w, b)
    y = Relu(h)
    z = MatMul(h, w) })";

/// A weighted sum, each loss beside it, and all outputs for whoever predicts.
TEST(Losses, AreSummedByTheirWeights) {
  TrainingSpec spec;
  ASSERT_TRUE(parseLosses({"y=softmax-cross-entropy,ignore-index=-1", "z=mse,weight=0.5,target=w2"}, spec));
  ImportedModel model(withWeights(twoHeads), spec);
  ASSERT_TRUE(model.module) << model.error;
  auto step = model.function("step");
  ASSERT_EQ(step.getNumArguments(), 3u);
  EXPECT_EQ(step.getArgAttrOfType<mlir::StringAttr>(1, "train.name"), "target_y");
  EXPECT_EQ(step.getArgAttrOfType<mlir::StringAttr>(2, "train.name"), "w2");
  EXPECT_EQ(step.getResultTypes().size(), 3u);                       // the sum and both parts
  EXPECT_EQ(model.function("evaluate").getResultTypes().size(), 6u); // and three outputs
  EXPECT_TRUE(model.only<train::ScaleOp>().getFactor().isExactlyValue(0.5));
  const auto outputs = train::outputsOf(*model.module);
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].getPart(), 1);
  EXPECT_EQ(outputs[1].getLoss(), "mse");
  EXPECT_EQ(outputs[2].getName(), "h");
  EXPECT_TRUE(outputs[2].getLoss().empty());
}

TEST(Losses, MayShareATargetOrCompareWithAnInput) {
  TrainingSpec spec;
  ASSERT_TRUE(parseLosses(
      {"y=softmax-cross-entropy,target=t", "h=softmax-cross-entropy,target=t,weight=0.3", "z=mse,target=x"}, spec));
  ImportedModel model(withWeights(twoHeads), spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.function("step").getNumArguments(), 2u);
  spec.losses[1].kind = AttachedLoss::Mse;
  EXPECT_THAT(ImportedModel(withWeights(twoHeads), spec).error,
              testing::HasSubstr("a loss compares with 't' of shape [2] (integers), but needs [2, 4] of numbers"));
}

TEST(Losses, AreNamedWhereThereAreSeveral) {
  const auto errorOf = [](const std::vector<std::string> &words, const std::string &output = "") {
    TrainingSpec spec;
    spec.output = output;
    Status status = parseLosses(words, spec);
    return status ? std::string() : status.error();
  };
  EXPECT_THAT(errorOf({"mse", "y=mse"}), testing::HasSubstr("of several losses each names its output"));
  EXPECT_THAT(errorOf({"y=mse", "y=mse"}), testing::HasSubstr("two losses compare 'y' with 'target_y'"));
  EXPECT_THAT(errorOf({"y=hinge"}), testing::HasSubstr("--loss=hinge is unknown; use "));
  EXPECT_THAT(errorOf({"y=mse,weight=0"}), testing::HasSubstr("weight is not a finite number but 0"));
  EXPECT_THAT(errorOf({"mse,ignore-index=1"}),
              testing::HasSubstr("mse knows no 'ignore-index'; it knows weight, target"));
  EXPECT_THAT(errorOf({"y=mse"}, "z"), testing::HasSubstr("--output=z and --loss=y=mse say both what is trained"));
  EXPECT_EQ(errorOf({"y=softmax-cross-entropy,class-weights=1:2:0"}), "");
  TrainingSpec spec;
  ASSERT_TRUE(parseLosses({"v=mse"}, spec));
  EXPECT_THAT(ImportedModel(withWeights(twoHeads), spec).error,
              testing::HasSubstr("--loss=v=mse names no value of the graph; the model's outputs are 'y', 'z', 'h'"));
}

TEST(Losses, OfCtcNeedTheLongestTarget) {
  TrainingSpec spec;
  const char *graph = R"(g (float[5, 2, 3] x) => (float[5, 2, 4] p) {
    u = Transpose<perm = [0, 1, 2]>(x)
    t = MatMul(u, v)
    p = LogSoftmax<axis = 2>(t) })";
  const auto withTable = [&] {
    auto proto = parseModel(graph, 17);
    addInitializer(proto, "v", {3, 4}, 0.1f, 0.01f);
    return proto;
  };
  spec.batchDims = {{"x", 1}, {"p", 1}};
  ASSERT_TRUE(parseLosses({"ctc"}, spec));
  EXPECT_THAT(ImportedModel(withTable(), spec).error, testing::HasSubstr("--loss=ctc needs length=S"));
  spec.losses.clear();
  ASSERT_TRUE(parseLosses({"ctc,length=3,blank=1,zero-infinity=yes,target-lengths=n"}, spec));
  ImportedModel model(withTable(), spec);
  ASSERT_TRUE(model.module) << model.error;
  auto loss = model.only<train::CtcLossOp>();
  EXPECT_THAT(mlir::cast<mlir::RankedTensorType>(loss.getX().getType()).getShape().vec(), ElementsAre(2, 5, 4));
  EXPECT_TRUE(model.ops<train::SoftmaxOp>().empty()); // the loss takes it
  EXPECT_TRUE(loss.getZeroInfinity() && !loss.getCountsSteps());
  EXPECT_EQ(train::idLimitOf(*model.module, "n").upper, 4);
  spec.losses[0].ctc.blank = 4;
  EXPECT_THAT(ImportedModel(withTable(), spec).error, testing::HasSubstr("4 is none of the 4 classes of output 'p'"));
}

} // namespace
} // namespace sluice
