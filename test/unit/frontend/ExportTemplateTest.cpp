// SPDX-License-Identifier: Apache-2.0
// What the template holds beside the bytes that programs patch.
#include "frontend/ExportTemplate.h"
#include "frontend/Identity.h"
#include "runtime/program/Export.h"
#include "test/unit/frontend/TextModel.h"

#include <filesystem>
#include <fstream>

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
  })",
                          &offsets);
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

TEST(ExportTemplate, DropsNothingAtRandom) {
  constexpr char graph[] = R"(g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {
    keep = Constant<value = float {0.8}>()
    size = Constant<value = int64[4] {2, 1, 1, 1}>()
    h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    empty = ConstantOfShape(size)
    draw = RandomUniformLike(empty)
    kept = Less(draw, keep)
    number = Cast<to = 1>(kept)
    mask = Div(number, keep)
    dropped = Mul(h, mask)
    y = Mul(dropped, keep)
  })";
  auto original = parseModel(graph), exported = templateOf(graph);
  for (const char *name : {"scale", "bias", "mean", "var"})
    addInitializer(original, name, {3}, 0.25f);
  EXPECT_EQ(modelIdentity(exported), modelIdentity(original));
  const auto &nodes = exported.graph().node();
  EXPECT_EQ(nodes[nodes.size() - 2].op_type(), "Identity");
  ASSERT_EQ(nodes[nodes.size() - 2].input_size(), 1);
  EXPECT_EQ(nodes[nodes.size() - 2].input(0), "h");
  EXPECT_EQ(nodes[nodes.size() - 1].op_type(), "Mul");
}

TEST(ExportTemplate, HasTheMeanOfWhatDropsByRoundingDown) {
  constexpr char graph[] = R"(g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {
    keep = Constant<value = float {0.8}>()
    h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    q = Div(h, keep)
    draw = RandomUniform<shape = [2, 1, 1, 1]>()
    sum = Add(keep, draw)
    mask = Floor(sum)
    y = Mul(q, mask)
  })";
  auto original = parseModel(graph), exported = templateOf(graph);
  for (const char *name : {"scale", "bias", "mean", "var"})
    addInitializer(original, name, {3}, 0.25f);
  EXPECT_EQ(modelIdentity(exported), modelIdentity(original));
  const auto &last = *exported.graph().node().rbegin();
  EXPECT_EQ(last.op_type(), "Mul");
  EXPECT_EQ(last.input(0), "q");
  EXPECT_EQ(last.input(1), "keep");
}

constexpr char trained[] = R"(g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {
    on = Constant<value = bool {1}>()
    ratio = Constant<value = float {0.5}>()
    h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, var)
    y = Dropout(h, ratio, on)
  })";

TEST(ExportTemplate, IsTheSameModelAndSaysWhoMadeIt) {
  auto original = parseModel(trained);
  for (const char *name : {"scale", "bias", "mean", "var"})
    addInitializer(original, name, {3}, 0.25f);
  auto exported = templateOf(trained);
  EXPECT_EQ(modelIdentity(exported), modelIdentity(original));
  ASSERT_EQ(exported.metadata_props_size(), 2);
  EXPECT_EQ(exported.metadata_props(0).key(), "sluice");
  EXPECT_EQ(exported.metadata_props(1).key(), "sluice.identity");
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(exported));
  ASSERT_TRUE(file) << file.error();
  auto again = exportTemplate(*file, {{"scale", {3}}});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes.compare(0, sizeof exportMark - 1, exportMark), 0);
  onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(again->bytes));
  EXPECT_EQ(parsed.metadata_props_size(), 2);
  EXPECT_EQ(modelIdentity(parsed), modelIdentity(original));
  // Who changes an export makes another model.
  parsed.mutable_graph()->mutable_node(0)->set_output(0, "other");
  EXPECT_NE(modelIdentity(parsed), modelIdentity(original));

  auto values = original, shape = original, name = original, attribute = original;
  values.mutable_graph()->mutable_initializer(0)->mutable_float_data()->Clear();
  EXPECT_EQ(modelIdentity(values), modelIdentity(original));
  shape.mutable_graph()->mutable_initializer(0)->set_dims(0, 4);
  name.mutable_graph()->mutable_initializer(0)->set_name("other");
  attribute.mutable_graph()->mutable_node(2)->mutable_attribute(0)->set_name("other");
  for (const auto &other : {shape, name, attribute})
    EXPECT_NE(modelIdentity(other), modelIdentity(original));
}

/// Of a file's model as it is read, and of its export as that is read.
std::pair<std::string, std::string> identities(const onnx::ModelProto &proto,
                                               const std::vector<TrainedTensor> &trainedTensors) {
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(proto));
  EXPECT_TRUE(file) << file.error();
  auto made = exportTemplate(*file, trainedTensors);
  EXPECT_TRUE(made);
  onnx::ModelProto exported;
  EXPECT_TRUE(exported.ParseFromString(made->bytes));
  TemporaryFolder other;
  auto again = OnnxFile::read(other.write(exported));
  EXPECT_TRUE(again) << again.error();
  return {modelIdentity(file->model()), modelIdentity(again->model())};
}

TEST(ExportTemplate, HasTheIdentityOfHalvesAndOfWhatNodesMake) {
  auto halves = parseModel(R"(g (float16[2, 3] x) => (float16[2, 3] y) {
    one = Constant<value = float16 {1}>()
    h = Mul(x, scale)
    y = Add(h, one)
  })");
  onnx::TensorProto *scale = halves.mutable_graph()->add_initializer();
  scale->set_name("scale");
  scale->set_data_type(onnx::TensorProto::FLOAT16);
  scale->add_dims(3);
  scale->set_raw_data(std::string(6, '\x3c'));
  auto [read, exported] = identities(halves, {{"scale", {3}}});
  EXPECT_EQ(read, exported);
  // Parameters that ConstantOfShape and Identity nodes made are initializers in the export.
  auto made = parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) {
    size = Constant<value = int64[1] {3}>()
    scale = ConstantOfShape<value = float[1] {0.5}>(size)
    copy = Identity(bias)
    h = Mul(x, scale)
    y = Add(h, copy)
  })");
  addInitializer(made, "bias", {3});
  std::tie(read, exported) = identities(made, {{"scale", {3}}, {"copy", {3}}});
  EXPECT_EQ(read, exported);
}

TEST(ModelFiles, AreTheModelAndItsExternalData) {
  auto model = parseModel(trained);
  addInitializer(model, "scale", {3}, 0.25f);
  auto *entry = model.mutable_graph()->mutable_initializer(0)->add_external_data();
  entry->set_key("location");
  entry->set_value("weights/w.bin");
  EXPECT_EQ(modelFiles("folder/m", model), (std::vector<std::string>{"folder/m", "folder/weights/w.bin"}));
  EXPECT_EQ(modelFiles("m", model), (std::vector<std::string>{"m", "weights/w.bin"}));
}

// A file without blocks: the bytes are mapped, and nobody looks at them.
TEST(ExportTemplate, IsNoneWhereOneFileCannotHoldTheModel) {
  auto proto = parseModel("g (float[2, 4] x) => (float[2, 134217728] y) { y = MatMul(x, w) }");
  onnx::TensorProto &weight = *proto.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  const int64_t columns = int64_t{1} << 27;
  for (int64_t extent : {int64_t{4}, columns})
    weight.add_dims(extent);
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto *location = weight.add_external_data();
  location->set_key("location");
  location->set_value("weights");
  TemporaryFolder folder;
  const std::string path = folder.write(proto);
  const auto weights = std::filesystem::path(path).replace_filename("weights");
  std::ofstream(weights).put(0);
  std::filesystem::resize_file(weights, 16 * columns);
  auto file = OnnxFile::read(path);
  ASSERT_TRUE(file) << file.error();
  auto made = exportTemplate(*file, {{"w", {4, columns}}});
  ASSERT_TRUE(made) << made.error();
  EXPECT_TRUE(made->bytes.empty());
  EXPECT_EQ(made->offsets, (std::map<std::string, int64_t>{{"w", 0}})); // frozen weights are told by these
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
