// SPDX-License-Identifier: Apache-2.0
// Weights that a file holds in fewer bits: what becomes of nodes and initializers, which numbers the forms have, and
// what is refused. test/execute/stored-forms.test trains beside them.
#include "frontend/StoredMatrix.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>
#include <limits>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void addBytes(onnx::ModelProto &proto, const std::string &name, std::vector<int64_t> shape, int32_t type,
              const std::string &bytes) {
  onnx::TensorProto &tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t extent : shape)
    tensor.add_dims(extent);
  tensor.set_raw_data(bytes);
}

std::string bytesOf(const std::vector<float> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(float)};
}

/// y = x W^T with W [4, 20] of 4 bits in blocks of 16, the second of which is short.
onnx::ModelProto product(const std::string &attributes, const std::string &inputs = "x, b_Q4, s") {
  auto proto = parseModel("g (float[2, 20] x) => (float[2, 4] y) { h = com.microsoft.MatMulNBits<" + attributes + ">(" +
                              inputs + ") y = Add(h, bias) }",
                          21);
  onnx::OperatorSetIdProto &import = *proto.add_opset_import();
  import.set_domain("com.microsoft");
  import.set_version(1);
  std::string codes(4 * 2 * 8, '\0');
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<char>(i * 37);
  addBytes(proto, "b_Q4", {4, 2, 8}, onnx::TensorProto::UINT8, codes);
  addBytes(proto, "s", {8}, onnx::TensorProto::FLOAT, bytesOf({1, 2, 3, 4, -5, 6, 7, 0}));
  addInitializer(proto, "bias", {4});
  return proto;
}

constexpr char usual[] = "K = 20, N = 4, bits = 4, block_size = 16";

/// y = x W with W [2, 4] by DequantizeLinear.
onnx::ModelProto dequantized(const std::string &node, int32_t type, const std::string &codes,
                             std::vector<int64_t> scaleShape, const std::vector<float> &scales) {
  auto proto =
      parseModel("g (float[3, 2] x) => (float[3, 4] y) { w = " + node + " h = MatMul(x, w) y = Add(h, bias) }", 21);
  addBytes(proto, "q", {2, 4}, type, codes);
  addBytes(proto, "s", std::move(scaleShape), onnx::TensorProto::FLOAT, bytesOf(scales));
  addInitializer(proto, "bias", {4});
  return proto;
}

OnnxFile readModel(const onnx::ModelProto &proto) {
  TemporaryFolder folder;
  Result<OnnxFile> file = OnnxFile::read(folder.write(proto));
  EXPECT_TRUE(file) << (file ? "" : file.error());
  return std::move(*file);
}

std::vector<float> floatsOf(const FileTensor *tensor) {
  std::vector<float> floats;
  if (tensor && tensor->stored)
    dequantize(tensor->stored->form, tensor->stored->bytes().data(), [&](const void *data, size_t bytes) {
      const auto *some = static_cast<const float *>(data);
      floats.insert(floats.end(), some, some + bytes / sizeof(float));
    });
  return floats;
}

} // namespace

TEST(StoredForms, ProductsOfBlocksBecomeThoseOfAMatrix) {
  ImportedModel model(product(usual));
  ASSERT_EQ(model.error, "");
  auto weight = model.variable("b");
  ASSERT_TRUE(weight) << "the name without ONNX Runtime's suffix";
  EXPECT_EQ(weight.getRole(), train::Role::Constant);
  const auto form = train::attr::get<train::attr::Quantized>(weight);
  ASSERT_TRUE(form);
  EXPECT_EQ(describe(form.form()), "int4 in groups of 16 along 1");
  EXPECT_EQ(form.form().rows, 4);
  EXPECT_EQ(form.form().columns, 20);
  EXPECT_EQ(model.ops<train::MatmulOp>().size(), 1u);
  EXPECT_THAT(model.report.remarks,
              testing::Contains(HasSubstr(
                  "1 weight that the file has in fewer bits is kept so, and held fixed: 1 in int4 in groups of 16")));
}

TEST(StoredForms, HaveTheNumbersOfTheFile) {
  OnnxFile file = readModel(product(usual));
  const FileTensor *tensor = file.tensor("b");
  const std::vector<float> floats = floatsOf(tensor);
  ASSERT_EQ(floats.size(), 80u);
  const float scales[] = {1, 2, 3, 4, -5, 6, 7, 0};
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 20; ++column) {
      const auto byte = static_cast<uint8_t>((row * 16 + column / 2) * 37);
      const int code = column % 2 ? byte >> 4 : byte & 15;
      EXPECT_EQ(floats[static_cast<size_t>(row * 20 + column)],
                static_cast<float>(code - 8) * scales[row * 2 + column / 16])
          << row << ", " << column;
    }
  EXPECT_EQ(file.tensor("b_Q4"), nullptr) << "nothing reads it any more";
}

TEST(StoredForms, ZeroPointsMayLieBetweenNumbers) {
  auto proto = product(usual, "x, b_Q4, s, z");
  addBytes(proto, "z", {4, 2}, onnx::TensorProto::FLOAT, bytesOf({0.5f, 8, 8, 8, 8, 8, 8, 15}));
  OnnxFile file = readModel(proto);
  const std::vector<float> floats = floatsOf(file.tensor("b"));
  ASSERT_EQ(floats.size(), 80u);
  EXPECT_EQ(floats[0], -0.5f);
  EXPECT_EQ(floats[1], -0.5f);
  EXPECT_STREQ(file.tensor("b")->stored->form.name(), "int4,asymmetric");
}

TEST(StoredForms, DequantizesByColumnsRowsAndAll) {
  const std::string codes("\1\2\3\4\375\6\7\200", 8); // 1 2 3 4 / -3 6 7 -128
  OnnxFile columns =
      readModel(dequantized("DequantizeLinear<axis = 1>(q, s)", onnx::TensorProto::INT8, codes, {4}, {1, 2, 3, 4}));
  EXPECT_THAT(floatsOf(columns.tensor("q")), ElementsAre(1, 4, 9, 16, -3, 12, 21, -512));
  EXPECT_STREQ(columns.tensor("q")->stored->form.name(), "int8") << "without zero points";
  OnnxFile rows =
      readModel(dequantized("DequantizeLinear<axis = -2>(q, s)", onnx::TensorProto::INT8, codes, {2}, {1, 2}));
  EXPECT_THAT(floatsOf(rows.tensor("q")), ElementsAre(1, 2, 3, 4, -6, 12, 14, -256));
  OnnxFile all = readModel(dequantized("DequantizeLinear(q, s)", onnx::TensorProto::UINT8, codes, {}, {0.5}));
  EXPECT_THAT(floatsOf(all.tensor("q")), ElementsAre(0.5, 1, 1.5, 2, 126.5, 3, 3.5, 64));
  EXPECT_STREQ(all.tensor("q")->stored->form.name(), "int8,asymmetric") << "zero is no number of 8 bits' middle";
}

TEST(StoredForms, DequantizesBlocksOfHalfBytes) {
  auto proto = dequantized("DequantizeLinear<axis = 1, block_size = 2>(q, s, z)", onnx::TensorProto::INT4,
                           std::string("\x21\x43\xf7\x8e", 4), {2, 2}, {1, 10, 2, 20}); // 1 2 3 4 / 7 -1 -2 -8
  addBytes(proto, "z", {2, 2}, onnx::TensorProto::INT4, std::string("\x10\xf0", 2));    // 0 1 / 0 -1
  OnnxFile file = readModel(proto);
  EXPECT_THAT(floatsOf(file.tensor("q")), ElementsAre(1, 2, 20, 30, 14, -2, -20, -140));
}

TEST(StoredForms, TwoReadersShareAMatrix) {
  auto proto = parseModel(R"(g (float[3, 2] x, int64[5] ids) => (float[3, 4] y, float[5, 4] z) {
    w = DequantizeLinear<axis = 1>(q, s) v = DequantizeLinear<axis = 1>(q, s) y = MatMul(x, w) z = Gather(v, ids) })",
                          21);
  addBytes(proto, "q", {2, 4}, onnx::TensorProto::INT8, std::string(8, '\1'));
  addBytes(proto, "s", {4}, onnx::TensorProto::FLOAT, bytesOf({1, 2, 3, 4}));
  OnnxFile file = readModel(proto);
  EXPECT_EQ(file.model().graph().initializer_size(), 1);
  EXPECT_EQ(floatsOf(file.tensor("q")).size(), 8u);
}

TEST(StoredForms, WhatDoesNotFitIsSaidWithItsNumbers) {
  const auto refusal = [](const onnx::ModelProto &proto) { return ImportedModel(proto).error; };
  EXPECT_THAT(refusal(product("K = 20, N = 4, bits = 2, block_size = 16")),
              HasSubstr("has weights of 2 bits in blocks of 16; supported are 4 and 8 bits"));
  EXPECT_THAT(refusal(product("K = 20, N = 4, bits = 4, block_size = 24")), HasSubstr("in blocks of 24"));
  EXPECT_THAT(refusal(product("K = 200, N = 4, bits = 4, block_size = 16")),
              HasSubstr("has weights 'b_Q4' of uint8 [4, 2, 8]; N=4 rows of K=200 in blocks of 16 need 104 each"));
  EXPECT_THAT(refusal(product("K = 20, N = 9223372036854775807, bits = 4, block_size = 16")),
              HasSubstr("need 16 each"));
  EXPECT_THAT(refusal(product("K = -1, N = 4, bits = 4, block_size = 16")), HasSubstr("says N=4 and K=-1"));
  auto grouped = product(usual, "x, b_Q4, s, , g");
  addBytes(grouped, "g", {20}, onnx::TensorProto::INT32, std::string(80, '\0'));
  EXPECT_THAT(refusal(grouped), HasSubstr("takes its inputs in the order of g_idx 'g', which is not supported"));
  auto zeros = product(usual, "x, b_Q4, s, z");
  addBytes(zeros, "z", {3}, onnx::TensorProto::UINT8, std::string(3, '\0'));
  EXPECT_THAT(refusal(zeros),
              HasSubstr("has zero points 'z' of uint8 [3]; N=4 rows of K=20 in blocks of 16 need 1 each"));
  const std::string codes(8, '\1');
  EXPECT_THAT(refusal(dequantized("DequantizeLinear<axis = 1>(q, s)", onnx::TensorProto::INT8, codes, {3}, {1, 2, 3})),
              HasSubstr("has scales 's' of float32 [3] along axis 1 of weights 'q' of int8 [2, 4]; there must be [4]"));
  EXPECT_THAT(refusal(dequantized("DequantizeLinear<axis = 1, block_size = 3>(q, s)", onnx::TensorProto::INT8, codes,
                                  {2, 1}, {1, 2})),
              HasSubstr("in blocks of 3; there must be [2, 2]"));
  EXPECT_THAT(refusal(dequantized("DequantizeLinear(q, s)", onnx::TensorProto::INT8, codes, {},
                                  {std::numeric_limits<float>::infinity()})),
              HasSubstr("the scale or zero point of group [0, 0] is not finite"));
  EXPECT_THAT(refusal(dequantized("DequantizeLinear(q, x)", onnx::TensorProto::INT8, codes, {}, {1})),
              HasSubstr("must be tensors of the file; 'x' is none"));
}

TEST(StoredForms, AreNotTrained) {
  TrainingSpec spec;
  spec.train = {"b"};
  EXPECT_THAT(ImportedModel(product(usual), spec).error,
              HasSubstr("tensor 'b' is held in int4 in groups of 16 along 1 by the file, which no step can train"));
}

} // namespace sluice
