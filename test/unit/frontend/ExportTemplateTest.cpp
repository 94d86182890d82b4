// SPDX-License-Identifier: Apache-2.0
// What the template holds beside the bytes that programs patch.
#include "TextModel.h"
#include "frontend/ExportTemplate.h"

namespace sluice {
namespace {

onnx::ModelProto templateOf(const std::string &graph, std::map<std::string, int64_t> *offsets = nullptr) {
  auto proto = parseModel(graph);
  for (const char *name : {"scale", "bias", "mean", "var"})
    addInitializer(proto, name, {3}, 0.25f);
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(proto));
  EXPECT_TRUE(file);
  auto made = exportTemplate(*file, {{"scale", {3}}, {"bias", {3}}, {"mean", {3}}, {"var", {3}}});
  EXPECT_TRUE(made);
  onnx::ModelProto result;
  EXPECT_TRUE(result.ParseFromString(made->bytes));
  for (auto [name, offset] : made->offsets)
    EXPECT_EQ(*reinterpret_cast<const float *>(made->bytes.substr(offset, 4).data()), 0.25f) << name;
  if (offsets)
    *offsets = made->offsets;
  return result;
}

TEST(ExportTemplate, HoldsWhatEvaluationComputes) {
  std::map<std::string, int64_t> offsets;
  auto model = templateOf(R"(g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {
    ratio = Constant<value = float {0.5}>()
    on = Constant<value = bool {1}>()
    h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    y = Dropout(h, ratio, on)
  })", &offsets);
  EXPECT_EQ(offsets.size(), 4u);
  for (const auto &node : model.graph().node()) {
    if (node.op_type() == "BatchNormalization") {
      EXPECT_EQ(node.output_size(), 1);
      EXPECT_EQ(node.attribute(0).i(), 0);
    }
    if (node.op_type() == "Dropout") {
      EXPECT_EQ(node.input_size(), 2);
    }
  }
}

TEST(ExportTemplate, LeavesStatisticsThatAreRead) {
  auto model = templateOf(R"(g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {
    h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    y = InstanceNormalization(h, m, v)
  })");
  EXPECT_EQ(model.graph().node(0).output_size(), 3);
  EXPECT_EQ(model.graph().node(0).attribute(0).i(), 1);
}

} // namespace
} // namespace sluice
