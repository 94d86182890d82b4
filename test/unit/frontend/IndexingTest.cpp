// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters with constant indices, and with indices that are data: what they become, what is folded, and how
// indices that make no sense are refused. Values and gradients are those of test/models/make_gradients.py.
#include "frontend/ConstantFolding.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Nodes that make y of h [2, 3, 4], which is x times a weight.
ImportedModel imported(const std::string &nodes, const std::string &y) {
  auto proto =
      parseModel("g (float[2, 3, 4] x, int64[2, 3] ids) => (float[" + y + "] y) { h = Mul(x, w) " + nodes + " }");
  addInitializer(proto, "w", {3, 1});
  addInitializer(proto, "u", {2, 4});
  TrainingSpec spec;
  spec.loss = AttachedLoss::Mse;
  return ImportedModel(proto, spec);
}

std::string constant(const std::string &name, const std::string &shape, const std::string &values) {
  return name + " = Constant<value = int64[" + shape + "] {" + values + "}>() ";
}

TEST(Indexing, AlongAnyDimensionIsAnEmbeddingOfThatInFront) {
  auto model = imported(constant("i", "2, 2", "3, 0, -1, 1") + "y = Gather<axis = 2>(h, i)", "2, 3, 2, 2");
  ASSERT_TRUE(model.module) << model.error;
  auto rows = model.only<train::EmbeddingOp>();
  EXPECT_THAT(extents(rows.getTable()), ElementsAre(4, 6));
  EXPECT_THAT(extents(rows.getY()), ElementsAre(2, 2, 6));
  auto data = imported("y = Gather<axis = 1>(h, ids)", "2, 2, 3, 4");
  ASSERT_TRUE(data.module) << data.error;
  EXPECT_THAT(extents(data.only<train::EmbeddingOp>().getTable()), ElementsAre(3, 8));
  EXPECT_THAT(imported(constant("i", "2", "0, 4") + "y = Gather<axis = 2>(h, i)", "2, 3, 2").error,
              HasSubstr("(Gather, opset 17): index 4 is outside the extent 4"));
}

TEST(Indexing, ElementsAndTuplesAreRowsOfTheFlattenedTensor) {
  auto elements =
      imported(constant("i", "2, 3, 1", "0, 3, -1, 1, 2, 2") + "y = GatherElements<axis = 2>(h, i)", "2, 3, 1");
  ASSERT_TRUE(elements.module) << elements.error;
  auto ids = elements.variable("y/indices").getValue()->getValues<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(ids.begin(), ids.end()), ElementsAre(0, 7, 11, 13, 18, 22));
  auto tuples = imported(constant("i", "2, 1", "2, 0") + "y = GatherND<batch_dims = 1>(h, i)", "2, 4");
  ASSERT_TRUE(tuples.module) << tuples.error;
  auto blocks = tuples.variable("y/indices").getValue()->getValues<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(blocks.begin(), blocks.end()), ElementsAre(2, 3));
  EXPECT_THAT(imported(constant("i", "3, 1, 1", "0, 0, 0") + "y = GatherElements<axis = 2>(h, i)", "3, 1, 1").error,
              HasSubstr("indices of shape [3, 1, 1] do not fit a tensor of shape [2, 3, 4]"));
  EXPECT_THAT(imported(constant("i", "1, 4", "0, 0, 0, 0") + "y = GatherND(h, i)", "1").error, HasSubstr("do not fit"));
  EXPECT_THAT(imported(constant("i", "1, 1", "0") + "y = GatherND<batch_dims = 7>(h, i)", "1").error,
              HasSubstr("do not fit"));
  EXPECT_THAT(imported(constant("i", "1, 2", "1, -4") + "y = GatherND(h, i)", "1, 4").error,
              HasSubstr("index -4 is outside the extent 3"));
}

TEST(Indexing, ScattersTakeTheirUpdatesFromBehindTheTensor) {
  auto some = imported(constant("i", "2, 2", "0, 2, 1, -3") + "y = ScatterND(h, i, u)", "2, 3, 4");
  ASSERT_TRUE(some.module) << some.error;
  auto ids = some.variable("y/indices").getValue()->getValues<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(ids.begin(), ids.end()), ElementsAre(0, 1, 6, 7, 4, 5));
  EXPECT_THAT(extents(some.only<train::ConcatOp>().getY()), ElementsAre(8, 4));
  auto all = imported(constant("i", "2, 1", "1, 0") + "y = ScatterND(h, i, h)", "2, 3, 4");
  ASSERT_TRUE(all.module) << all.error;
  EXPECT_TRUE(all.ops<train::ConcatOp>().empty());
  auto twice = imported(constant("i", "2, 2", "0, 2, 0, 2") + "y = ScatterND<reduction = \"add\">(h, i, u)", "2, 3, 4");
  ASSERT_TRUE(twice.module) << twice.error;
  EXPECT_EQ(twice.ops<train::EmbeddingOp>().size(), 2u);
  EXPECT_EQ(twice.ops<train::AddOp>().size(), 2u);
  auto largest =
      imported(constant("i", "2, 2", "0, 2, 0, 2") + "y = ScatterND<reduction = \"max\">(h, i, u)", "2, 3, 4");
  ASSERT_TRUE(largest.module) << largest.error;
  EXPECT_EQ(largest.ops<train::SelectOp>().size(), 2u);
}

TEST(Indexing, RefusesScattersThatMakeNoSense) {
  EXPECT_THAT(imported(constant("i", "1, 2", "0, 2") + "y = ScatterND(h, i, u)", "2, 3, 4").error,
              HasSubstr("updates of shape [2, 4] do not fit 1 places of 4 elements in a tensor of shape [2, 3, 4]"));
  EXPECT_THAT(imported(constant("i", "2, 2", "0, 2, 0, 3") + "y = ScatterND(h, i, u)", "2, 3, 4").error,
              HasSubstr("index 3 is outside the extent 3"));
  EXPECT_THAT(
      imported(constant("i", "2, 2", "0, 2, 0, 1") + "y = ScatterND<reduction = \"mean\">(h, i, u)", "2, 3, 4").error,
      HasSubstr("reduction 'mean' is none of none, add, mul, max and min"));
}

TEST(Indexing, IndicesThatAreDataScatterRows) {
  auto blocks = [](const std::string &reduction) {
    return imported(constant("p", "1", "0") + constant("e", "1", "1") + constant("a", "1", "1") +
                        "i = Slice(ids, p, e, a) y = ScatterND<reduction = \"" + reduction + "\">(h, i, h)",
                    "2, 3, 4");
  };
  auto sum = blocks("add");
  ASSERT_TRUE(sum.module) << sum.error;
  auto rows = sum.only<train::ScatterRowsOp>();
  EXPECT_FALSE(rows.getLargest());
  EXPECT_THAT(extents(rows.getX()), ElementsAre(2, 12));
  EXPECT_THAT(extents(rows.getY()), ElementsAre(2, 12));
  auto last = blocks("none");
  ASSERT_TRUE(last.module) << last.error;
  EXPECT_EQ(last.ops<train::ScatterRowsOp>().size(), 2u);
  EXPECT_THAT(blocks("mul").error,
              HasSubstr("multiplies by updates at indices that are data; export it with constant indices"));
  auto smallest = blocks("min");
  ASSERT_TRUE(smallest.module) << smallest.error;
  EXPECT_EQ(smallest.ops<train::ScatterRowsOp>().size(), 3u);
}

TEST(Indexing, TuplesThatAreDataAreCheckedByTheirExtents) {
  auto model = imported("y = GatherND(h, ids)", "2");
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(extents(model.only<train::EmbeddingOp>().getTable()), ElementsAre(24, 1));
  EXPECT_EQ(model.ops<train::CompareOp>().size(), 9u) << "below 0, at least 0 and below the extent, of each";
  EXPECT_THAT(imported("y = GatherND<batch_dims = 1>(h, ids)", "2").error,
              HasSubstr("indices of shape [2, 3] do not fit a tensor of shape [2, 3, 4]"));
  EXPECT_THAT(imported("y = GatherND(h, h)", "2").error, HasSubstr("indices 'h' must be integers"));
  EXPECT_THAT(imported("y = ScatterElements(h, ids, u)", "2, 3, 4").error,
              HasSubstr("indices of shape [2, 3] do not fit a tensor of shape [2, 3, 4]"));
}

TEST(Indexing, OneHotsCompareWithPositions) {
  auto model = imported("d = Constant<value = int64 {5}>() v = Constant<value = float[2] {0.0, 1.0}>()"
                        " o = OneHot<axis = 1>(ids, d, v) r = ReduceSum(o) y = Mul(h, r)",
                        "2, 3, 4");
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_EQ(model.ops<train::CompareOp>().size(), 2u);
  auto positions = model.variable("o/positions");
  EXPECT_THAT(mlir::cast<mlir::RankedTensorType>(positions.getType()).getShape().vec(), ElementsAre(5, 1));
  auto refused = [](const std::string &depth, const std::string &values) {
    return imported("d = Constant<value = int64" + depth + "}>() v = Constant<value = float" + values +
                        "}>() y = OneHot(ids, d, v)",
                    "2, 3, 4")
        .error;
  };
  EXPECT_THAT(refused(" {0", "[2] {0.0, 1.0"), HasSubstr("(OneHot, opset 17): needs one depth from 1 to 16777216"));
  EXPECT_THAT(refused("[2] {1, 1", "[2] {0.0, 1.0"), HasSubstr("has [2] and 2 values"));
  EXPECT_THAT(refused(" {3", "[1] {0.0"), HasSubstr("and 1 values"));
}

// The mask of shifted windows, written slice by slice: nothing of it is left in the step.
TEST(Indexing, MasksThatAreWrittenInPartsAreFolded) {
  auto model = imported(constant("s", "1", "4") + constant("i", "2, 1", "1, 3") +
                            "z = ConstantOfShape<value = float[1] {0.0}>(s) v = Constant<value = float[2] {2.0, 5.0}>()"
                            " m = ScatterND(z, i, v) y = Add(h, m)",
                        "2, 3, 4");
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_TRUE(model.ops<train::EmbeddingOp>().empty());
  auto mask = model.variable("m").getValue()->getValues<float>();
  EXPECT_THAT(std::vector<float>(mask.begin(), mask.end()), ElementsAre(0, 2, 0, 5));
}

// Copies of the file's tensors must not add up: what is beyond the limit is a tensor like others, whose ids kernels
// check.
TEST(Indexing, CopiesOfTensorsAreLimitedTogether) {
  auto proto = parseModel("g (float[4, 3] x) => (float[4, 4] y) { axes = Constant<value_ints = [0]>() a = Gather(x, p)"
                          " b = Gather(x, q) s = ReduceSum<keepdims = 1>(a, axes) t = ReduceSum<keepdims = 1>(b, axes)"
                          " u = Add(x, s) v = Add(u, t) y = Gemm<transB = 1>(v, w) }");
  addInitializer(proto, "w", {4, 3});
  constexpr int64_t count = 100000;
  for (const char *name : {"p", "q"}) {
    auto *ids = proto.mutable_graph()->add_initializer();
    ids->set_name(name);
    ids->set_data_type(onnx::TensorProto::INT64);
    ids->add_dims(count);
    ids->set_raw_data(std::string(count * 8, *name == 'p' ? '\0' : '\1'));
  }
  EXPECT_THAT(ImportedModel(proto).error, HasSubstr("is outside the extent 4"));
  TrainingSpec spec;
  spec.limits.constantBytes = 1 << 20;
  ImportedModel limited(proto, spec);
  EXPECT_TRUE(limited.module) << limited.error;
}

} // namespace
} // namespace sluice
