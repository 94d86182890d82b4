// SPDX-License-Identifier: Apache-2.0
// Fake quantization: rounding that hands its gradient on, within the grid's range.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

onnx::ModelProto quantizedBy(const std::string &nodes) {
  auto model = parseModel("g (float[2, 3] x) => (float[2, 4] y) { s = Constant<value = float {0.25}>() " + nodes +
                              " y = Gemm<transB = 1>(h, w) }",
                          21);
  addInitializer(model, "w", {4, 3}, 0.1f, 0.01f);
  return model;
}

std::string errorOf(const std::string &nodes) { return ImportedModel(quantizedBy(nodes)).error; }

TEST(Quantize, HandsGradientsOnWhereTheGridReaches) {
  struct Case {
    const char *zero;
    float least, most, shift;
  };
  const Case cases[] = {{"uint8 {117}", -117.5f, 138.5f, 117},
                        {"int8 {0}", -128.5f, 127.5f, 0},
                        {"int8 {-3}", -125.5f, 130.5f, -3},
                        {"uint16 {9}", -9.5f, 65526.5f, 9},
                        {"int16 {0}", -32768.5f, 32767.5f, 0}};
  for (const auto &[zero, least, most, shift] : cases) {
    ImportedModel model(quantizedBy("z = Constant<value = " + std::string(zero) +
                                    ">() q = QuantizeLinear(x, s, z) h = DequantizeLinear(q, s, z)"));
    ASSERT_TRUE(model.module) << zero << ": " << model.error;
    auto round = model.only<train::RoundOp>();
    EXPECT_TRUE(round.getStraightThrough());
    EXPECT_EQ(round.getRounding(), train::Rounding::NearestEven);
    auto clip = round.getX().getDefiningOp<train::ClipOp>();
    // What is limited rounds into the range.
    EXPECT_EQ(std::nearbyint(clip.getMin().convertToFloat()), std::ceil(least));
    EXPECT_EQ(std::nearbyint(clip.getMax().convertToFloat()), std::floor(most));
    EXPECT_NEAR(clip.getMin().convertToFloat(), least, 0.01);
    EXPECT_NEAR(clip.getMax().convertToFloat(), most, 0.01);
    EXPECT_EQ(model.ops<train::AddOp>().size(), shift == 0 ? 0u : 2u);
  }
}

TEST(Quantize, HasAScaleForEachChannel) {
  auto proto = quantizedBy("z = Constant<value = int8[4] {0, 0, 0, 0}>() q = QuantizeLinear<axis = 0>(w, t, z)"
                           " d = DequantizeLinear<axis = 0>(q, t, z) h = Identity(x)");
  addInitializer(proto, "t", {4}, 0.01f, 0.01f);
  proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1)->set_input(1, "d");
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  auto division = model.only<train::DivOp>();
  EXPECT_EQ(extents(division.getB()), (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(model.variable("w").getRole(), train::Role::Parameter);
  EXPECT_FALSE(model.variable("t")) << "scales are not trained";
}

TEST(Quantize, RefusesWhatIsNoFakeQuantization) {
  const std::string real = " h = Cast<to = 1>(q)";
  EXPECT_THAT(errorOf("q = QuantizeLinear<output_dtype = 17>(x, s)" + real),
              HasSubstr("supported are int8, uint8, int16 and uint16"));
  EXPECT_THAT(errorOf("n = Constant<value = float {-1.0}>() q = QuantizeLinear(x, n)" + real),
              HasSubstr("a scale is -1"));
  EXPECT_THAT(errorOf("t = Constant<value = float[2] {0.5, 0.25}>() q = QuantizeLinear<axis = 1>(x, t)" + real),
              HasSubstr("2 scales do not fit the extent 3 of axis 1"));
  EXPECT_THAT(errorOf("t = Constant<value = float[3] {0.5, 0.25, 0.5}>() z = Constant<value = uint8[3] {0, 1, 0}>()"
                      " q = QuantizeLinear<axis = 1>(x, t, z)" +
                      real),
              HasSubstr("zero points that differ from channel to channel are not supported"));
  EXPECT_THAT(
      errorOf("q = Constant<value = int32[2, 3] {1, 2, 3, 4, 5, 6}>() d = DequantizeLinear(q, s) h = Add(x, d)"),
      HasSubstr("its weights are stored as integers"));
}

} // namespace
} // namespace sluice
