// SPDX-License-Identifier: Apache-2.0
// Models in half and double precision are the float32 models of the same numbers.
#include "test/unit/frontend/ImportedModel.h"
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <limits>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Stored> std::string bytesOf(const std::vector<Stored> &numbers) {
  return std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Stored));
}

/// y = cast(cast(x @ w) * c) with w [2, 2] of the given bytes, everything else of the type with that name.
onnx::ModelProto modelOf(const std::string &type, int32_t code, const std::string &bytes) {
  auto model = parseModel("g (" + type + "[3, 2] x) => (" + type + "[3, 2] y) { c = Constant<value = " + type +
                          "[1] {2}>() p = MatMul(x, w) q = Cast<to = 1>(p) r = Cast<to = " + std::to_string(code) +
                          ">(q) y = Mul(r, c) }");
  onnx::TensorProto *weight = model.mutable_graph()->add_initializer();
  weight->set_name("w");
  weight->set_data_type(code);
  weight->add_dims(2), weight->add_dims(2);
  weight->set_raw_data(bytes);
  return model;
}

std::vector<float> floatsOf(const FileTensor *tensor) {
  EXPECT_TRUE(tensor);
  EXPECT_EQ(tensor->elementType, onnx::TensorProto::FLOAT);
  std::vector<float> numbers(tensor->bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), tensor->bytes.data(), tensor->bytes.size());
  return numbers;
}

std::vector<float> weightsIn(const onnx::ModelProto &model) {
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(model));
  EXPECT_TRUE(file) << file.error();
  return file ? floatsOf(file->tensor("w")) : std::vector<float>();
}

const std::string halves = bytesOf<uint16_t>({0x3c00, 0xb555, 0x0001, 0xfbff}); // 1, -1/3, the least, the most negative

TEST(FloatWidening, KeepsTheNumbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  EXPECT_THAT(weightsIn(modelOf("float16", onnx::TensorProto::FLOAT16, halves)),
              ElementsAre(1, -0.333251953125f, 0x1p-24f, -65504));
  EXPECT_THAT(
      weightsIn(modelOf("bfloat16", onnx::TensorProto::BFLOAT16, bytesOf<uint16_t>({0x3f80, 0xbeab, 0x0080, 0x7f80}))),
      ElementsAre(1, -0.333984375f, 0x1p-126f, infinity));
  EXPECT_THAT(weightsIn(modelOf("double", onnx::TensorProto::DOUBLE, bytesOf<double>({1, -1.0 / 3, 1e300, -HUGE_VAL}))),
              ElementsAre(1, -1.0f / 3, largest, -infinity));
}

TEST(FloatWidening, ReadsTypedFieldsAndFilesBeside) {
  auto typed = modelOf("float16", onnx::TensorProto::FLOAT16, "");
  onnx::TensorProto &weight = *typed.mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  for (int32_t bits : {0x3c00, 0xb555, 0x0001, 0xfbff})
    weight.add_int32_data(bits);
  EXPECT_THAT(weightsIn(typed), ElementsAre(1, -0.333251953125f, 0x1p-24f, -65504));

  TemporaryFolder folder;
  folder.write("w.bin", halves);
  weight.clear_int32_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto *location = weight.add_external_data();
  location->set_key("location"), location->set_value("w.bin");
  auto file = OnnxFile::read(folder.write(typed));
  ASSERT_TRUE(file) << file.error();
  EXPECT_THAT(floatsOf(file->tensor("w")), ElementsAre(1, -0.333251953125f, 0x1p-24f, -65504));
  EXPECT_EQ(file->model().graph().initializer(0).data_location(), onnx::TensorProto::DEFAULT); // exports are whole
}

/// Many tensors may be the same bytes of one file; as float32 each has its own.
TEST(FloatWidening, HasALimitOfAllWeightsTogether) {
  auto model = modelOf("float16", onnx::TensorProto::FLOAT16, "");
  onnx::TensorProto &weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto *location = weight.add_external_data();
  location->set_key("location"), location->set_value("w.bin");
  const onnx::TensorProto first = weight;
  for (int i = 1; i < 4; ++i) {
    onnx::TensorProto &same = *model.mutable_graph()->add_initializer();
    same = first;
    same.set_name("w" + std::to_string(i));
  }
  TemporaryFolder folder;
  folder.write("w.bin", halves);
  const std::string path = folder.write(model);
  Limits limits;
  limits.widenedBytes = 4 * 16;
  EXPECT_TRUE(OnnxFile::read(path, limits));
  limits.widenedBytes = 4 * 16 - 1;
  EXPECT_THAT(OnnxFile::read(path, limits).error(),
              HasSubstr("initializer 'w3', with those before it as float32, has 64 bytes, more than the limit of 63"));
}

TEST(FloatWidening, TrainsThemAsFloat32) {
  for (auto [type, code] : {std::pair<std::string, int32_t>{"float16", onnx::TensorProto::FLOAT16},
                            {"bfloat16", onnx::TensorProto::BFLOAT16},
                            {"double", onnx::TensorProto::DOUBLE}}) {
    ImportedModel model(modelOf(type, code, std::string(code == onnx::TensorProto::DOUBLE ? 32 : 8, '\0')));
    ASSERT_TRUE(model.module) << type << ": " << model.error;
    EXPECT_EQ(model.variable("w").getRole(), train::Role::Parameter) << type;
    EXPECT_TRUE(model.ops<train::CastOp>().empty()) << type;
    EXPECT_TRUE(
        mlir::cast<mlir::RankedTensorType>(model.function("step").getArgument(0).getType()).getElementType().isF32());
  }
}

TEST(FloatWidening, CastsBetweenFloatsKeepFloat32) {
  auto model = parseModel(R"(g (float[3, 2] x) => (float[3, 2] y) {
    p = MatMul(x, w)
    d = Cast<to = 11>(p)
    r = Mul(d, d)
    y = Cast<to = 1>(r) })");
  addInitializer(model, "w", {2, 2});
  ImportedModel imported(model);
  ASSERT_TRUE(imported.module) << imported.error;
  EXPECT_TRUE(imported.ops<train::CastOp>().empty());
}

TEST(FloatWidening, WidensSubgraphsAndFunctions) {
  auto model = parseModel(R"(g (float16[3, 2] x) => (float16[3, 2] y) {
    p = MatMul(x, w)
    c = Constant<value = bool {1}>()
    y = If<then_branch = t () => (float16[3, 2] a) { a = Cast<to = 10>(p) },
           else_branch = e () => (float16[3, 2] b) { b = Neg(p) }>(c) })");
  onnx::TensorProto *weight = model.mutable_graph()->add_initializer();
  weight->set_name("w");
  weight->set_data_type(onnx::TensorProto::FLOAT16);
  weight->add_dims(2), weight->add_dims(2);
  weight->set_raw_data(halves);
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(model));
  ASSERT_TRUE(file) << file.error();
  EXPECT_THAT(file->model().ShortDebugString(), testing::Not(HasSubstr("elem_type: 10")));
}

TEST(FloatWidening, SaysWhichDataAreTooShort) {
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(modelOf("float16", onnx::TensorProto::FLOAT16, "ab")));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error(), HasSubstr("tensor 'w': data has 2 bytes but shape [2, 2] of float16 needs 8"));
}

} // namespace
} // namespace sluice
