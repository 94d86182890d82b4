// SPDX-License-Identifier: Apache-2.0
// Which layers --adapter finds, what it makes of them, and what it refuses; test/execute/added-adapters.test trains
// them.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A layer of 6 inputs and 4 outputs as Gemm, one of 4 and 4 behind a Transpose, and a last one.
onnx::ModelProto layers(int opset = 17) {
  auto proto = parseModel(R"(g (float[2, 6] x) => (float[2, 3] y) {
    a = Gemm<transB = 1>(x, first, offset) b = Relu(a)
    turned = Transpose<perm = [1, 0]>(second) c = MatMul(b, turned) d = Tanh(c)
    y = MatMul(d, last) })",
                          opset);
  addInitializer(proto, "first", {4, 6});
  addInitializer(proto, "offset", {4});
  addInitializer(proto, "second", {4, 4});
  addInitializer(proto, "last", {4, 3});
  return proto;
}

TrainingSpec lora(const std::string &words) {
  TrainingSpec spec;
  auto request = parseAdapter("lora" + words);
  EXPECT_TRUE(request) << (request ? "" : request.error());
  if (request)
    spec.adapter = *request;
  return spec;
}

std::vector<int64_t> shapeOf(train::VariableOp variable) {
  return mlir::cast<mlir::RankedTensorType>(variable.getType()).getShape().vec();
}

std::vector<std::string> trained(ImportedModel &model) {
  std::vector<std::string> names;
  for (auto variable : model.module->getOps<train::VariableOp>())
    if (variable.getRole() == train::Role::Parameter)
      names.push_back(variable.getSymName().str());
  std::sort(names.begin(), names.end());
  return names;
}

onnx::ModelProto images(const std::string &attributes, std::vector<int64_t> weights) {
  auto proto =
      parseModel("g (float[2, 6, 9, 9] x) => (float[2, 4, 5, 5] y) { h = Conv<strides = [2, 2], pads = [1, 1, 1, 1]" +
                 attributes + ">(x, w, bias) y = Tanh(h) }");
  addInitializer(proto, "w", weights);
  addInitializer(proto, "bias", {4});
  return proto;
}

} // namespace

TEST(AdapterInsertion, AllMatricesButTheLast) {
  ImportedModel model(layers(), lora(",rank=2"));
  ASSERT_EQ(model.error, "");
  EXPECT_THAT(trained(model), ElementsAre("first.lora_A.weight", "first.lora_B.weight", "second.lora_A.weight",
                                          "second.lora_B.weight"));
  EXPECT_EQ(model.ops<train::MatmulOp>().size(), 7u);
  EXPECT_THAT(model.report.remarks,
              testing::Contains(HasSubstr("adapters of rank 2 stand beside 2 weights, 36 numbers")));
  auto first = model.variable("first.lora_A.weight");
  EXPECT_EQ(first.getInit(), train::Init::Xavier);
  EXPECT_EQ(6.0 / static_cast<double>(first.getFanIn() + first.getFanOut()), 1.0 / 6) << "PEFT's bound, 1 / sqrt(6)";
  EXPECT_EQ(model.variable("first.lora_B.weight").getInit(), train::Init::Zero);
}

TEST(AdapterInsertion, WhatIsNamedStaysTrained) {
  TrainingSpec spec = lora(",rank=1,targets=second");
  spec.train = {"last.*"};
  ImportedModel model(layers(), spec);
  ASSERT_EQ(model.error, "");
  EXPECT_THAT(trained(model), ElementsAre("last", "second.lora_A.weight", "second.lora_B.weight"));
}

// Loops are taken apart first; what comes of them shares a weight, and its adapter.
TEST(AdapterInsertion, LayersOfALoopShareTheirs) {
  auto proto = parseModel(R"(g (float[2, 4] x) => (float[2, 4] y) {
    n = Constant<value = int64 {3}>() t = Constant<value = bool {1}>()
    h = Loop (n, t, x) <body = b (int64 i, bool c, float[2, 4] s) => (bool c2, float[2, 4] s2) {
      c2 = Identity(c) p = MatMul(s, w) s2 = Relu(p) }>
    y = Tanh(h) })");
  addInitializer(proto, "w", {4, 4});
  ImportedModel model(proto, lora(",rank=1,targets=w"));
  ASSERT_EQ(model.error, "");
  EXPECT_THAT(trained(model), ElementsAre("w.lora_A.weight", "w.lora_B.weight"));
  EXPECT_EQ(model.ops<train::MatmulOp>().size(), 9u);
}

// The same file is imported again, with another request, as if nothing had been.
TEST(AdapterInsertion, AnotherImportBeginsAnew) {
  TemporaryFolder folder;
  mlir::MLIRContext context;
  Result<OnnxFile> file = OnnxFile::read(folder.write(layers()));
  ASSERT_TRUE(file);
  for (const char *words : {",rank=2", ",rank=3", ",rank=2"}) {
    auto module = importOnnx(context, *file, lora(words));
    ASSERT_TRUE(module) << module.error();
    auto variable = (*module)->lookupSymbol<train::VariableOp>("second.lora_A.weight");
    EXPECT_EQ(mlir::cast<mlir::RankedTensorType>(variable.getType()).getDimSize(0), words[6] - '0');
  }
  auto plain = importOnnx(context, *file, TrainingSpec());
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ((*plain)->lookupSymbol("second.lora_A.weight"), nullptr);
  EXPECT_EQ(file->model().graph().initializer_size(), 4);
}

TEST(AdapterInsertion, DropoutOfEveryOpset) {
  for (int opset : {7, 11, 12, 17}) {
    ImportedModel model(layers(opset), lora(",rank=1,dropout=0.25,targets=first"));
    ASSERT_EQ(model.error, "") << opset;
    EXPECT_FLOAT_EQ(model.only<train::DropoutOp>().getRatio().convertToFloat(), 0.25f);
    EXPECT_EQ(model.ops<train::DropoutOp>("evaluate").size(), 0u);
  }
}

// As PEFT has them: the windows to the rank's channels, then pixel by pixel.
TEST(AdapterInsertion, ConvolutionsThatAreNamed) {
  ImportedModel model(images("", {4, 6, 3, 3}), lora(",rank=2,alpha=3,targets=w"));
  ASSERT_EQ(model.error, "");
  EXPECT_THAT(shapeOf(model.variable("w.lora_A.weight")), ElementsAre(2, 6, 3, 3));
  EXPECT_THAT(shapeOf(model.variable("w.lora_B.weight")), ElementsAre(4, 2, 1, 1));
  EXPECT_EQ(model.variable("w.lora_A.weight").getFanIn(), 54u);
  const auto adapters = train::adaptersOf(*model.module);
  ASSERT_EQ(adapters.size(), 1u);
  EXPECT_EQ(adapters[0].getBase().getValue(), "w");
  EXPECT_EQ(adapters[0].getScale().getValueAsDouble(), 1.5);
  EXPECT_TRUE(adapters[0].getBaseTransposed() && adapters[0].getFirstTransposed() && adapters[0].getSecondTransposed());
  EXPECT_FALSE(adapters[0].getMagnitude());
  EXPECT_THAT(ImportedModel(images("", {4, 6, 3, 3}), lora(",rank=2")).error,
              HasSubstr("convolutions have one where targets=REGEX names them"));
  EXPECT_THAT(ImportedModel(images(", group = 2", {4, 3, 3, 3}), lora(",rank=2,targets=w")).error,
              HasSubstr("'w' is of a convolution in 2 groups"));
}

TEST(AdapterInsertion, MagnitudesBeginAsLengths) {
  for (int opset : {13, 18}) {
    TrainingSpec spec = lora(",rank=1,targets=first");
    spec.adapter->hasMagnitude = true;
    ImportedModel model(layers(opset), spec);
    ASSERT_EQ(model.error, "") << opset;
    EXPECT_THAT(trained(model),
                ElementsAre("first.lora_A.weight", "first.lora_B.weight", "first.lora_magnitude_vector"));
    auto magnitude = model.variable("first.lora_magnitude_vector");
    EXPECT_EQ(magnitude.getInit(), train::Init::Norm);
    EXPECT_THAT(shapeOf(magnitude), ElementsAre(4));
    EXPECT_EQ(model.ops<train::DetachOp>().size(), 1u);
    const auto adapters = train::adaptersOf(*model.module);
    ASSERT_EQ(adapters.size(), 1u);
    EXPECT_EQ(adapters[0].getMagnitude().getValue(), "first.lora_magnitude_vector");
    EXPECT_FALSE(adapters[0].getShared()) << "what lengths are computed of is no other reader";
  }
}

TEST(AdapterInsertion, RefusesWhatCannotBe) {
  EXPECT_THAT(ImportedModel(layers(), lora(",targets=firs")).error,
              HasSubstr("targets=firs matches the whole name of no"));
  EXPECT_THAT(ImportedModel(layers(), lora(",rank=3,targets=last.*")).error,
              HasSubstr("rank 3 is not below the extents of 'last', 4 inputs and 3 outputs"));
  EXPECT_THAT(ImportedModel(layers(), lora(",rank=4")).error,
              HasSubstr("no layer of the model has a weight matrix of"));
  EXPECT_NE(ImportedModel(layers(), lora(",targets=(")).error, "");
  auto twice = layers();
  addInitializer(twice, "first.lora_A.weight", {1});
  EXPECT_THAT(ImportedModel(twice, lora(",rank=1")).error, HasSubstr("the model has 'first.lora_A.weight' already"));
}

TEST(AdapterInsertion, WordsOfTheFlag) {
  const auto request = parseAdapter("lora,rank=4,alpha=0.5,rslora,dropout=0.1,targets=a,rank{1,2}");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->rank, 4);
  EXPECT_EQ(request->alpha, 0.5);
  EXPECT_EQ(request->dropout, 0.1);
  EXPECT_TRUE(request->rootOfRank);
  EXPECT_EQ(request->targets, "a,rank{1,2}");
  EXPECT_FALSE(request->hasMagnitude);
  ASSERT_TRUE(parseAdapter("dora,rank=2"));
  EXPECT_TRUE(parseAdapter("dora,rank=2")->hasMagnitude);
  for (const char *wrong : {"", "adapter", "lora,", "lora,rank=0", "lora,rank=x", "lora,alpha=0", "lora,alpha=inf",
                            "lora,dropout=1", "lora,rslora=1", "lora,targets="})
    EXPECT_FALSE(parseAdapter(wrong)) << wrong;
}

} // namespace sluice
