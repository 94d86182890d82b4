// SPDX-License-Identifier: Apache-2.0
// Each BatchNormalization normalizes as the file says, unless the flags say otherwise.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

/// A backbone in eval mode before a head in training mode.
onnx::ModelProto mixed() {
  auto proto = parseModel(R"(g (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) {
    a = BatchNormalization(x, backbone_s, backbone_b, backbone_m, backbone_v)
    c = Conv(a, k)
    y, ym, yv = BatchNormalization<training_mode = 1>(c, head_s, head_b, head_m, head_v) })");
  addInitializer(proto, "k", {3, 3, 1, 1}, 0.1f, 0.1f);
  for (const char *name : {"backbone_s", "backbone_v", "head_s", "head_v"})
    addInitializer(proto, name, {3}, 1);
  for (const char *name : {"backbone_b", "backbone_m", "head_b", "head_m"})
    addInitializer(proto, name, {3}, 0);
  return proto;
}

/// How many nodes of @step take each batch's statistics.
size_t trained(const onnx::ModelProto &proto, const TrainingSpec &spec) {
  ImportedModel model(proto, spec);
  EXPECT_TRUE(model.module) << model.error;
  return model.module ? model.ops<train::BatchNormOp>().size() : 0;
}

TEST(BatchNormForms, EachNodeIsAsTheFileSays) {
  ImportedModel model(mixed());
  ASSERT_TRUE(model.module) << model.error;
  auto update = model.only<train::UpdateStatisticsOp>();
  EXPECT_EQ(train::variableOf(update.getRunningMean()).getValue(), "head_m");
  EXPECT_EQ(model.ops<train::ChannelAffineOp>().size(), 1u);
  EXPECT_THAT(model.report.remarks.back(),
              HasSubstr("1 of 2 BatchNormalization nodes is in inference form and trained by the running statistics"));
}

TEST(BatchNormForms, FlagsDecideOtherwise) {
  TrainingSpec spec;
  spec.batchNorm = BatchNormMode::Train;
  EXPECT_EQ(trained(mixed(), spec), 2u);
  spec.batchNorm = BatchNormMode::Frozen;
  EXPECT_EQ(trained(mixed(), spec), 0u);
  spec.batchNormRules = {{BatchNormMode::Train, "back.*"}};
  EXPECT_EQ(trained(mixed(), spec), 1u);
  spec.batchNormRules.push_back({BatchNormMode::Frozen, ".*"}); // the last one counts
  EXPECT_EQ(trained(mixed(), spec), 0u);
  spec.batchNormRules.push_back({BatchNormMode::Train, "neck.*"});
  EXPECT_THAT(ImportedModel(mixed(), spec).error, HasSubstr("--batch-norm=train:neck.* matches no BatchNormalization"));
}

/// A module that is called twice: its second call takes in what the first one left.
TEST(BatchNormForms, SharedStatisticsTakeInOneBatchAfterTheOther) {
  auto proto = parseModel(R"(g (float[4, 3] x) => (float[4, 3] y) {
    a, am, av = BatchNormalization<training_mode = 1>(x, s, b, m, v)
    y, ym, yv = BatchNormalization<training_mode = 1>(a, s, b, m, v) })");
  for (const char *name : {"s", "v"})
    addInitializer(proto, name, {3}, 1);
  for (const char *name : {"b", "m"})
    addInitializer(proto, name, {3}, 0);
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  const auto updates = model.ops<train::UpdateStatisticsOp>();
  ASSERT_EQ(updates.size(), 2u);
  auto first = updates[0], second = updates[1];
  EXPECT_EQ(second.getRunningMean(), first.getNewMean());
  EXPECT_EQ(second.getRunningVar(), first.getNewVar());
  EXPECT_EQ(train::variableOf(second.getRunningMean()).getValue(), "m");
}

/// Before opset 14 the outputs for new statistics tell.
TEST(BatchNormForms, OutputsTellInEarlyOpsets) {
  for (bool trains : {false, true}) {
    auto proto = parseModel(std::string("g (float[4, 3] x) => (float[4, 3] y) { y") +
                                (trains ? ", m1, v1, m2, v2" : "") + " = BatchNormalization(x, s, b, m, v) }",
                            11);
    for (const char *name : {"s", "v"})
      addInitializer(proto, name, {3}, 1);
    for (const char *name : {"b", "m"})
      addInitializer(proto, name, {3}, 0);
    EXPECT_EQ(trained(proto, {}), trains ? 1u : 0u);
  }
}

/// torch.export's files have no training_mode; their metadata tell what the module was.
TEST(BatchNormForms, MetadataOfTorchExportTell) {
  for (bool trains : {false, true}) {
    auto proto = mixed();
    onnx::NodeProto &node = *proto.mutable_graph()->mutable_node(0);
    auto &entry = *node.add_metadata_props();
    entry.set_key("pkg.torch.onnx.class_hierarchy");
    entry.set_value(std::string("['torch.nn.modules.batchnorm.BatchNorm2d', 'aten._native_batch_norm_legit_") +
                    (trains ? "functional.default']" : "no_training.default']"));
    EXPECT_EQ(trained(proto, {}), trains ? 2u : 1u);
  }
}

TEST(BatchNormForms, StatisticsThatAreDrawnNormalizeNothing) {
  TrainingSpec spec;
  spec.init = InitialValues::Kaiming;
  EXPECT_EQ(trained(mixed(), spec), 2u);
  spec.batchNorm = BatchNormMode::Frozen;
  EXPECT_EQ(trained(mixed(), spec), 0u);
}

} // namespace
} // namespace sluice
