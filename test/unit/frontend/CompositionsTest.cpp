// SPDX-License-Identifier: Apache-2.0
// Ops that are imported as compositions of others: what they become, and how operands that make no sense are refused.
// Their values and gradients are those of test/models/make_gradients.py.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ImportedModel imported(const std::string &nodes, const std::string &y = "2, 3, 4, 4", int opset = 21) {
  auto proto = parseModel("g (float[2, 3, 4, 4] x) => (float[" + y + "] y) { h = Mul(x, w) " + nodes + " }", opset);
  addInitializer(proto, "w", {3, 1, 1});
  addInitializer(proto, "v", {3});
  addInitializer(proto, "u", {6});
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  return ImportedModel(proto, spec);
}

std::string errorOf(const std::string &nodes, int opset = 21) { return imported(nodes, "2, 3, 4, 4", opset).error; }

TEST(ComposedOps, GroupNormOfPyTorchScalesOnce) {
  auto model = imported("n = Constant<value = int64[1] {3}>() one = ConstantOfShape<value = float[1] {1.0}>(n)"
                        " zero = ConstantOfShape<value = float[1] {0.0}>(n) y = InstanceNormalization(h, one, zero)");
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::LayerNormOp>().getX()), ElementsAre(6, 16));
  EXPECT_EQ(model.ops<train::MulOp>().size(), 1u) << "that of x with w";
  EXPECT_TRUE(model.ops<train::AddOp>().empty());
}

/// Gradients reach x through them as through any other values.
TEST(ComposedOps, MeanAndDeviationOfLayerNormalization) {
  auto proto = parseModel(R"(g (float[2, 3, 4] x) => (float[2, 3, 1] y) {
    h, mean, deviation = LayerNormalization<epsilon = 0.25>(x, scale)
    y = Mul(mean, deviation) })");
  addInitializer(proto, "scale", {4});
  ImportedModel model(proto);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.ops<train::LayerNormOp>().empty()) << "nobody reads it";
  EXPECT_EQ(model.ops<train::SumToOp>().size(), 2u) << "the mean, which the deviation takes as well, and the variance";
  EXPECT_THAT(extents(model.only<train::DivOp>().getY()), ElementsAre(2, 3, 1));
}

TEST(ComposedOps, AMaskOfADropoutThatKeepsAllIsOnes) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  spec.dropout = DropoutMode::Off;
  ImportedModel model(parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) {
    h, mask = Dropout(x)
    m = Cast<to = 1>(mask)
    y = Mul(h, m) })"),
                      spec);
  ASSERT_TRUE(model.module) << model.error;
}

/// An exporter that folds constants makes initializers of them, which nobody trains inside a GroupNorm.
TEST(ComposedOps, InitializersInsideGroupNormAreConstants) {
  for (const std::string view : {"Reshape", "Relu"}) {
    auto proto =
        parseModel("g (float[2, 4, 4] x) => (float[2, 4, 4] y) { s = Constant<value = int64[3] {2, 2, 8}>() "
                   "t = Constant<value = int64[3] {2, 4, 4}>() h = Mul(x, w) r = Reshape(h, s) "
                   "n = InstanceNormalization(r, scale, shift) " +
                   (view == "Reshape" ? std::string("y = Reshape(n, t) }") : "m = Relu(n) y = Reshape(m, t) }"));
    addInitializer(proto, "w", {4, 1});
    addInitializer(proto, "scale", {2}, 1);
    addInitializer(proto, "shift", {2}, 0);
    TrainingSpec spec;
    spec.loss = AttachedLoss::Mse;
    ImportedModel model(proto, spec);
    ASSERT_TRUE(model.module) << model.error;
    EXPECT_EQ(bool(model.variable("scale")), view != "Reshape") << view;
    EXPECT_EQ(bool(model.variable("shift")), view != "Reshape") << view;
  }
}

TEST(ComposedOps, NormalizationsNeedAVectorOfChannels) {
  EXPECT_THAT(
      errorOf("y = InstanceNormalization(h, u, v)"),
      HasSubstr("(InstanceNormalization, opset 21): has 3 channels or groups but a scale or bias of shape [6]"));
  EXPECT_THAT(errorOf("y = GroupNormalization<num_groups = 2>(h, v, v)"),
              HasSubstr("num_groups 2 does not divide the 3 channels"));
  EXPECT_THAT(errorOf("y = GroupNormalization<num_groups = 0>(h, v, v)"), HasSubstr("num_groups 0"));
  EXPECT_THAT(errorOf("f = Flatten<axis = 0>(h) y = InstanceNormalization(f, v, v)"), HasSubstr("rank 3 at least"));
  EXPECT_THAT(errorOf("y = LpNormalization<p = 3>(h)"), HasSubstr("p is 3, must be 1 or 2"));
  EXPECT_THAT(errorOf("y = RMSNormalization(h, u)", 23), HasSubstr("(RMSNormalization, opset 23)"));
}

// Weights that are standardized: statistics that the graph computes of them, none of which is left in a step.
TEST(ComposedOps, BatchNormsOfComputedStatistics) {
  const std::string nodes = "s = ReduceMean<axes = [0, 2, 3], keepdims = 0>(h) d = Mul(s, s) y = BatchNormalization";
  auto model = imported(nodes + "<training_mode = 1>(h, v, v, s, d)", "2, 3, 4, 4", 17);
  ASSERT_TRUE(model.module) << model.error;
  model.only<train::BatchNormOp>();
  EXPECT_TRUE(model.ops<train::SumToOp>().empty());
  EXPECT_TRUE(model.ops<train::UpdateStatisticsOp>().empty());
  EXPECT_TRUE(model.ops<train::BatchNormOp>("evaluate").empty());
  model.only<train::SumToOp>("evaluate");
  auto inference = imported(nodes + "(h, v, v, s, d)", "2, 3, 4, 4", 17);
  ASSERT_TRUE(inference.module) << inference.error;
  inference.only<train::SumToOp>();
  auto line = imported("m = Constant<value = int64[3] {2, 3, 16}>() l = Reshape(h, m) s = ReduceMean<axes = [0, 2], "
                       "keepdims = 0>(l) d = Mul(s, s) y = BatchNormalization<training_mode = 1>(l, v, v, s, d)",
                       "2, 3, 16", 17);
  EXPECT_TRUE(line.module) << line.error; // a weight with its window as one dimension, as PyTorch writes it
  EXPECT_THAT(errorOf("s = ReduceMean<axes = [0, 2], keepdims = 0>(h) y = BatchNormalization(h, v, v, s, s)", 17),
              HasSubstr("has 3 channels but running statistics of shape [3, 4]"));
}

// Windows of volumes have eight dimensions on their way; tensors have six.
TEST(ComposedOps, TransposesMoreDimensionsThanTensorsHave) {
  const std::string split = "s = Constant<value = int64[8] {2, 1, 3, 2, 2, 2, 2, 1}>() r = Reshape(h, s) ";
  auto model = imported(split + "t = Transpose<perm = [0, 1, 3, 5, 2, 4, 6, 7]>(r) "
                                "q = Constant<value = int64[2] {2, 48}>() y = Reshape(t, q)",
                        "2, 48");
  ASSERT_TRUE(model.module) << model.error;
  auto transpose = model.only<train::TransposeOp>();
  EXPECT_THAT(extents(transpose.getX()), ElementsAre(2, 3, 2, 2, 2, 2));
  EXPECT_THAT(transpose.getPermutation(), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_EQ(model.ops<train::ReshapeOp>().size(), 2u);
  EXPECT_THAT(errorOf(split + "y = Relu(r)"),
              HasSubstr("(Relu, opset 21): reads a tensor of rank 8, more than the limit"));
  EXPECT_THAT(errorOf(split + "y = Transpose<perm = [0, 0, 3, 5, 2, 4, 6, 7]>(r)"), HasSubstr("no permutation of 8"));
  EXPECT_THAT(errorOf(split + "y = Transpose<perm = [7, 6, 5, 4, 3, 2, 1, 0]>(r)"),
              HasSubstr("rank 8, more than the limit of 6"));
}

// Positions along height and along width, of queries and of keys: a map of pairs has them as dimensions of its own.
TEST(ComposedOps, AddsTensorsOfMoreDimensionsThanTensorsHave) {
  const std::string pairs = "a = Constant<value = int64[7] {2, 1, 3, 2, 2, 4, 1}>() p = Reshape(h, a)"
                            " b = Constant<value = int64[7] {2, 1, 3, 2, 2, 1, 4}>() q = Reshape(h, b) ";
  auto model = imported(pairs + "i = Identity(p) s = Add(i, q) e = Constant<value = int64[2] {2, 192}>()"
                                " y = Reshape(s, e)",
                        "2, 192");
  ASSERT_TRUE(model.module) << model.error;
  auto sum = model.only<train::AddOp>();
  EXPECT_THAT(extents(sum.getA()), ElementsAre(24, 4, 1));
  EXPECT_THAT(extents(sum.getB()), ElementsAre(24, 1, 4));
  EXPECT_THAT(errorOf(pairs + "y = Add(p, q)"), HasSubstr("rank 7, more than the limit of 6"));
  EXPECT_THAT(errorOf(pairs + "m = Constant<value = int64[7] {2, 1, 1, 2, 2, 3, 4}>() r = Reshape(h, m)"
                              " s = Add(p, r) y = Flatten(s)"),
              HasSubstr("do not broadcast"));
}

TEST(ComposedOps, BoundsAreClips) {
  auto model = imported("b = Constant<value = float {0.5}>() y = Max(h, b)");
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_FLOAT_EQ(model.only<train::ClipOp>().getMin().convertToFloat(), 0.5f);
  EXPECT_TRUE(model.ops<train::MaxPoolOp>().empty());
  EXPECT_THAT(errorOf("y = Max(h, u)"), HasSubstr("do not broadcast"));
  EXPECT_THAT(errorOf("y = PRelu(h, u)"), HasSubstr("(PRelu, opset 21)"));
}

TEST(ComposedOps, PadsFitTheTensor) {
  auto pad = [](const std::string &pads, const std::string &mode) {
    return errorOf("p = Constant<value = int64[8] {" + pads + "}>() y = Pad<mode = \"" + mode + "\">(h, p)");
  };
  EXPECT_THAT(pad("0, 0, 4, 0, 0, 0, 0, 0", "reflect"),
              HasSubstr("a pad of 4 is more than the 3 that mode 'reflect' supports for an extent of 4"));
  EXPECT_THAT(pad("0, 0, 5, 0, 0, 0, 0, 0", "wrap"), HasSubstr("a pad of 5 is more than the 4"));
  EXPECT_THAT(pad("0, 0, 0, 0, 0, 0, 0, 0", "mirror"), HasSubstr("mode 'mirror' is none of"));
  EXPECT_THAT(pad("0, 0, -5, 0, 0, 0, 0, 0", "edge"), HasSubstr("do not fit the extent 4"));
  EXPECT_THAT(errorOf("p = Constant<value = int64[2] {1, 1}>() y = Pad(h, p)"), HasSubstr("needs 8 pads, has 2"));
}

TEST(ComposedOps, SlicesByAnyStep) {
  auto slice = [](const std::string &starts, const std::string &ends, const std::string &axes, const std::string &steps,
                  const std::string &y) {
    auto list = [](const char *name, const std::string &values) {
      const auto count = std::to_string(1 + std::count(values.begin(), values.end(), ','));
      return std::string(name) + " = Constant<value = int64[" + count + "] {" + values + "}>() ";
    };
    return imported(
        list("s", starts) + list("e", ends) + list("a", axes) + list("t", steps) + "y = Slice(h, s, e, a, t)", y);
  };
  EXPECT_EQ(slice("3", "-9223372036854775808", "2", "-1", "2, 3, 4, 4").error, "");
  EXPECT_EQ(slice("0", "9223372036854775807", "3", "3", "2, 3, 4, 2").error, "");
  EXPECT_EQ(slice("-1", "-9223372036854775808", "2", "-9223372036854775808", "2, 3, 1, 4").error, "");
  EXPECT_THAT(slice("1", "3", "2", "-1", "2, 3, 4, 4").error, HasSubstr("there is nothing to train"))
      << "a result without elements is a constant";
  EXPECT_THAT(slice("0", "3", "2", "0", "2, 3, 4, 4").error, HasSubstr("a step of 0 takes nothing"));
  EXPECT_THAT(slice("0, 0", "3, 3", "2, 2", "1, 1", "2, 3, 4, 4").error, HasSubstr("axis 2 is given twice"));
}

TEST(ComposedOps, TilesAndTriangles) {
  auto tile = [](const std::string &repeats) {
    return errorOf("r = Constant<value = int64[4] {" + repeats + "}>() y = Tile(h, r)");
  };
  EXPECT_THAT(tile("1, 1, 1, 9223372036854775807"),
              HasSubstr("cannot repeat an extent of 4 9223372036854775807 times"));
  EXPECT_THAT(tile("1, 1, 1, 0"), HasSubstr("cannot repeat"));
  EXPECT_THAT(tile("2147483647, 1, 1, 536870911"), HasSubstr("(Tile, opset 21)"));
  EXPECT_THAT(errorOf("a = Constant<value = int64 {4}>() y = CumSum(h, a)"), HasSubstr("axis 4 is outside rank 4"));
  auto wide =
      parseModel("g (float[1, 5000] x) => (float[1, 5000] y) { a = Constant<value = int64 {1}>() y = CumSum(x, a) }");
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  EXPECT_THAT(ImportedModel(wide, spec).error, HasSubstr("a triangle of [5000, 5000] has more than the "));
}

TEST(ComposedOps, BlocksAreATransposedConvolution) {
  const std::string blocks = "f = Constant<value = int64[3] {2, 12, 4}>() b = Reshape(h, f) ";
  auto fold = [&](const std::string &size, const std::string &kernel) {
    return imported(blocks + "s = Constant<value = int64[2] {" + size + "}>() k = Constant<value = int64[2] {" +
                        kernel + "}>() y = Col2Im(b, s, k)",
                    "2, 3, 3, 3");
  };
  auto model = fold("3, 3", "2, 2");
  ASSERT_TRUE(model.module) << model.error;
  auto conv = model.only<train::ConvTransposeOp>();
  EXPECT_THAT(extents(conv.getX()), ElementsAre(6, 4, 2, 2));
  EXPECT_EQ(model.variable("y/places").getRole(), train::Role::Constant);
  EXPECT_THAT(fold("3, 4", "2, 2").error, HasSubstr("(Col2Im, opset 21): an operand of shape [2, 12, 4] does not hold "
                                                    "blocks of shape [2, 2] for 2 times 3 places"));
  EXPECT_THAT(fold("9223372036854775807, -1", "2, 2").error, HasSubstr("for 0 times 0 places"));
  EXPECT_THAT(fold("3, 3", "5, 1").error, HasSubstr("does not hold blocks"));
  EXPECT_THAT(fold("3, 3", "0, 2").error, HasSubstr("kernel extent 0 is not positive"));
}

TEST(ComposedOps, EinsumAsAProductOfMatrices) {
  auto model = imported("y = Einsum<equation = \"bchw, bdhw -> bcd\">(h, x)", "2, 3, 3");
  ASSERT_TRUE(model.module) << model.error;
  auto product = model.only<train::MatmulOp>();
  EXPECT_THAT(extents(product.getA()), ElementsAre(2, 3, 16));
  EXPECT_THAT(extents(product.getB()), ElementsAre(2, 16, 3));
}

TEST(ComposedOps, EquationsThatMakeNoSense) {
  auto einsum = [](const std::string &equation, const std::string &operands) {
    return errorOf("y = Einsum<equation = \"" + equation + "\">(" + operands + ")");
  };
  EXPECT_THAT(einsum("bchw,c->bhw", "h"), HasSubstr("equation 'bchw,c->bhw' has 2 operands for 1 inputs"));
  EXPECT_THAT(einsum("bch->b", "h"), HasSubstr("does not label the dimensions of an input of shape [2, 3, 4, 4]"));
  EXPECT_THAT(einsum("...bchwk->b", "h"), HasSubstr("does not label"));
  EXPECT_THAT(einsum("bcww->bc", "h"), HasSubstr("has a label twice in one operand"));
  EXPECT_THAT(einsum("bchw,c->bc", "h, u"), HasSubstr("has a label of the extents 3 and 6"));
  EXPECT_THAT(einsum("bchw->bz", "h"), HasSubstr("a label that is no operand's"));
  EXPECT_THAT(einsum("bchw->bb", "h"), HasSubstr("or twice there"));
  EXPECT_THAT(einsum("", "h"), HasSubstr("does not label"));
  EXPECT_THAT(einsum("->", "h"), HasSubstr("does not label"));
  EXPECT_THAT(einsum("......", "h"), HasSubstr("(Einsum, opset 21)"));
}

} // namespace
} // namespace sluice
