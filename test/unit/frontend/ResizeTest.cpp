// SPDX-License-Identifier: Apache-2.0
// Resize as a matrix for each dimension: a few by hand; the others are ONNX's own (test/models/backend_ops.py).
#include "frontend/ResizeMatrix.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> matrix(const ResizeRule &rule, const ResizedExtent &extent) {
  bool outside = false;
  return resizeMatrix(rule, extent, outside)->floats;
}

TEST(ResizeMatrix, WeightsByDistance) {
  ResizeRule rule;
  rule.mode = "linear";
  EXPECT_THAT(matrix(rule, {2, 4, 2}), ElementsAre(1, 0, 0.75, 0.25, 0.25, 0.75, 0, 1));
  rule.antialias = true; // the edge stands for what is outside
  EXPECT_THAT(matrix(rule, {4, 1, 0.25}), ElementsAre(0.28125, 0.21875, 0.21875, 0.28125));
  rule.mode = "nearest";
  EXPECT_THAT(matrix(rule, {3, 1, 1.0 / 3}), ElementsAre(0, 1, 0));
  rule = {};
  rule.mode = "cubic";
  rule.coordinates = "align_corners";
  EXPECT_THAT(matrix(rule, {3, 3, 1}), ElementsAre(1, 0, 0, 0, 1, 0, 0, 0, 1));
  for (const double scale : {1e-300, 1e300})
    for (const double weight : matrix(rule, {3, 3, scale}))
      EXPECT_TRUE(weight == weight) << scale;
}

ImportedModel resized(const std::string &attributes, const std::string &x, const std::string &sizes,
                      const std::string &y, const std::string &roi = "") {
  auto proto = parseModel("g (float[" + x + "] x) => (float[" + y + "] y) { s = Constant<value = int64[" +
                              std::to_string(1 + std::count(sizes.begin(), sizes.end(), ',')) + "] {" + sizes +
                              "}>() r = Constant<value = float[4] {0.0, 0.0, 2.0, 0.5}>() h = Mul(x, w) y = Resize<" +
                              attributes + ">(h, " + roi + ", , s) }",
                          19);
  addInitializer(proto, "w", {1});
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  return ImportedModel(proto, spec);
}

TEST(Resize, ByMatricesWhereTheKernelCannot) {
  auto cubic = resized("mode = \"cubic\"", "2, 3, 4, 4", "2, 3, 8, 4", "2, 3, 8, 4");
  ASSERT_TRUE(cubic.module) << cubic.error;
  EXPECT_THAT(extents(cubic.only<train::MatmulOp>().getA()), ElementsAre(8, 4));
  EXPECT_EQ(cubic.variable("y/weights2").getRole(), train::Role::Constant);
  auto linear = resized("mode = \"linear\"", "2, 3, 4, 4", "2, 3, 8, 8", "2, 3, 8, 8");
  ASSERT_TRUE(linear.module) << linear.error;
  linear.only<train::ResizeOp>();
  auto volume = resized("mode = \"linear\"", "2, 3, 4, 4, 4", "2, 3, 8, 8, 8", "2, 3, 8, 8, 8");
  ASSERT_TRUE(volume.module) << volume.error;
  EXPECT_EQ(volume.ops<train::ResizeOp>().size(), 2u); // of depth, and of slices
  auto smooth = resized("mode = \"cubic\"", "2, 3, 4, 4, 4", "2, 3, 8, 8, 8", "2, 3, 8, 8, 8");
  ASSERT_TRUE(smooth.module) << smooth.error;
  EXPECT_EQ(smooth.ops<train::MatmulOp>().size(), 3u);
}

TEST(Resize, RefusesWhatMakesNoSense) {
  auto errorOf = [](const std::string &attributes, const std::string &sizes = "2, 3, 8, 8",
                    const std::string &roi = "") {
    return resized(attributes, "2, 3, 4, 4", sizes, "2, 3, 8, 8", roi).error;
  };
  EXPECT_THAT(errorOf("mode = \"magic\""), HasSubstr("(Resize, opset 19): mode 'magic' is not supported"));
  EXPECT_THAT(errorOf("coordinate_transformation_mode = \"magic\""),
              HasSubstr("coordinate_transformation_mode 'magic'"));
  EXPECT_THAT(errorOf("nearest_mode = \"magic\""), HasSubstr("nearest_mode 'magic' is not supported"));
  EXPECT_THAT(errorOf("mode = \"cubic\"", "2, 3, 0, 8"), HasSubstr("a size of 0 is not possible"));
  EXPECT_THAT(errorOf("mode = \"cubic\"", "2, 3, 9999999, 8"), HasSubstr("takes a matrix of more than the 16777216"));
  EXPECT_THAT(errorOf("axes = [2], keep_aspect_ratio_policy = \"magic\"", "8"), HasSubstr("'magic' is none of"));
  EXPECT_THAT(
      errorOf("axes = [2, 3], coordinate_transformation_mode = \"tf_crop_and_resize\", extrapolation_value = 2.0",
              "8, 8", "r"),
      HasSubstr("extrapolation_value 2.000000 is not supported; use 0"));
  EXPECT_THAT(errorOf("coordinate_transformation_mode = \"tf_crop_and_resize\"", "2, 3, 8, 8", "r"),
              HasSubstr("roi must be a start and an end for each of 4 dimensions, has shape [4]"));
}

} // namespace
} // namespace sluice
