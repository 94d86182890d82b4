// SPDX-License-Identifier: Apache-2.0
// Folding of shape arithmetic, one small expression per op.
#include "frontend/ConstantFolding.h"
#include "test/unit/frontend/TextModel.h"
#include <cmath>
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

/// Folds `y = OP` over the given inputs, named a, b, c, ...
Result<HostTensor> fold(const std::string &node, std::vector<HostTensor> inputs, int opset = 17) {
  auto model = parseModel("g (float[2] x) => (float[2] y) { y = " + node + " }", opset);
  HostInputs pointers;
  for (const HostTensor &input : inputs)
    pointers.push_back(&input);
  return foldNode(model.graph().node(0), opset, pointers);
}

HostTensor ints(std::vector<int64_t> values) { return HostTensor::vector(std::move(values)); }

HostTensor floats(std::vector<double> values) {
  HostTensor tensor;
  tensor.integral = false;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.floats = std::move(values);
  return tensor;
}

TEST(ConstantFolding, Arithmetic) {
  EXPECT_THAT(fold("Add(a, b)", {ints({1, 2}), ints({10})})->ints, ElementsAre(11, 12));
  EXPECT_THAT(fold("Div(a, b)", {ints({-7, 7}), ints({2})})->ints, ElementsAre(-3, 3));
  EXPECT_THAT(fold("Mod(a, b)", {ints({-7, 7}), ints({4})})->ints, ElementsAre(1, 3));
  EXPECT_THAT(fold("Mul(a, b)", {floats({1.5, 2}), floats({3})})->floats, ElementsAre(4.5, 6));
  EXPECT_THAT(fold("Floor(a)", {floats({1.5, -1.5})})->floats, ElementsAre(1, -2));
  EXPECT_THAT(fold("Cast<to = 7>(a)", {floats({1.9, -1.9})})->ints, ElementsAre(1, -1));
  EXPECT_THAT(fold("Where(a, b, c)", {ints({1, 0}), ints({5}), ints({6})})->ints, ElementsAre(5, 6));
  EXPECT_THAT(fold("Equal(a, b)", {ints({-1, 3}), ints({-1})})->ints, ElementsAre(1, 0));
}

TEST(ConstantFolding, RefusesDivisionByZeroAndShapesThatConflict) {
  EXPECT_THAT(fold("Div(a, b)", {ints({7}), ints({0})}).error(), HasSubstr("by zero"));
  EXPECT_THAT(fold("Mod(a, b)", {ints({7}), ints({0})}).error(), HasSubstr("by zero"));
  EXPECT_THAT(fold("Add(a, b)", {ints({1, 2}), ints({1, 2, 3})}).error(), HasSubstr("[2] and [3] do not broadcast"));
  EXPECT_TRUE(fold("Div(a, b)", {ints({INT64_MIN}), ints({-1})}));
}

TEST(ConstantFolding, Movement) {
  EXPECT_THAT(fold("Gather<axis = 0>(a, b)", {ints({5, 6, 7}), ints({-1, 0})})->ints, ElementsAre(7, 5));
  EXPECT_THAT(fold("Gather<axis = 0>(a, b)", {ints({5, 6, 7}), HostTensor::scalar(1)})->shape, ElementsAre());
  EXPECT_THAT(fold("Concat<axis = 0>(a, b)", {ints({1}), ints({2, 3})})->ints, ElementsAre(1, 2, 3));
  EXPECT_THAT(fold("Unsqueeze(a, b)", {HostTensor::scalar(4), ints({0})})->shape, ElementsAre(1));
  EXPECT_THAT(fold("Squeeze(a)", {ints({4})})->shape, ElementsAre());
  EXPECT_THAT(fold("Range(a, b, c)", {HostTensor::scalar(2), HostTensor::scalar(9), HostTensor::scalar(3)})->ints,
              ElementsAre(2, 5, 8));
  EXPECT_THAT(fold("ReduceProd<keepdims = 0>(a)", {ints({2, 3, 4})})->ints, ElementsAre(24));
  EXPECT_THAT(fold("Expand(a, b)", {ints({3}), ints({2})})->ints, ElementsAre(3, 3));
  EXPECT_THAT(fold("Expand(a, b)", {ints({3, 4}), ints({2, 1})})->ints, ElementsAre(3, 4, 3, 4));
}

// Buckets of relative positions take the logarithm of 0, and then choose another number.
TEST(ConstantFolding, CastsOfWhatNoIntegerIsGiveTheLeast) {
  EXPECT_THAT(fold("Cast<to = 7>(a)", {floats({-HUGE_VAL, HUGE_VAL, NAN, 2.75, -2.75})})->ints,
              ElementsAre(INT64_MIN, INT64_MIN, INT64_MIN, 2, -2));
}

TEST(ConstantFolding, Masks) {
  const HostTensor ones = *fold("Expand(a, b)", {ints({1}), ints({2, 2, 3})});
  EXPECT_THAT(fold("Trilu<upper = 0>(a)", {ones})->ints, ElementsAre(1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0));
  EXPECT_THAT(fold("Trilu(a, b)", {ones, HostTensor::scalar(1)})->ints,
              ElementsAre(0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1));
  EXPECT_THAT(fold("Trilu(a, b)", {ones, HostTensor::scalar(INT64_MIN)})->ints, ElementsAreArray(ones.ints));
  EXPECT_THAT(fold("Trilu(a)", {ints({1, 2})}).error(), HasSubstr("needs matrices"));
  EXPECT_THAT(fold("Xor(a, b)", {ints({0, 1, 2}), ints({1, 1, 0})})->ints, ElementsAre(1, 0, 1));
}

TEST(ConstantFolding, Reductions) {
  const HostTensor table = *fold("Reshape(a, b)", {ints({1, 2, 3, 4, 5, 6}), ints({2, 3})});
  EXPECT_THAT(fold("ReduceSum(a, b)", {table, ints({1})})->ints, ElementsAre(6, 15));
  EXPECT_THAT(fold("ReduceSum(a, b)", {table, ints({-1})})->shape, ElementsAre(2, 1));
  EXPECT_THAT(fold("ReduceMax<axes = [0], keepdims = 0>(a)", {table})->shape, ElementsAre(3));
  EXPECT_THAT(fold("ReduceMin(a)", {table})->ints, ElementsAre(1));
  EXPECT_THAT(fold("ReduceMean(a)", {floats({1, 2, 6})})->floats, ElementsAre(3));
  EXPECT_THAT(fold("ReduceSum(a)", {ints({})})->ints, ElementsAre(0));
  EXPECT_THAT(fold("ReduceMean(a)", {floats({})}).error(), HasSubstr("the mean of nothing"));
  EXPECT_THAT(fold("ReduceSum(a, b)", {table, ints({2})}).error(), HasSubstr("axis 2 is outside rank 2"));
  EXPECT_THAT(fold("CumSum(a, b)", {table, ints({0})})->ints, ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(fold("CumSum<exclusive = 1, reverse = 1>(a, b)", {floats({1, 2, 4}), ints({0})})->floats,
              ElementsAre(6, 4, 0));
  EXPECT_THAT(fold("ArgMax<axis = 1, keepdims = 0>(a)", {table})->ints, ElementsAre(2, 2));
  EXPECT_THAT(fold("ArgMin<axis = 0>(a)", {floats({1, 0, 0})})->ints, ElementsAre(1));
  EXPECT_THAT(fold("ArgMin<select_last_index = 1>(a)", {floats({1, 0, 0})})->ints, ElementsAre(2));
}

TEST(ConstantFolding, Indexing) {
  const HostTensor zeros = *HostTensor::zeros({3}, /*integral=*/true);
  EXPECT_THAT(fold("ScatterElements(a, b, c)", {zeros, ints({2, -3}), ints({7, 8})})->ints, ElementsAre(8, 0, 7));
  EXPECT_THAT(fold("ScatterElements<reduction = \"add\">(a, b, c)", {zeros, ints({1, 1}), ints({7, 8})}, 18)->ints,
              ElementsAre(0, 15, 0));
  EXPECT_THAT(fold("ScatterElements(a, b, c)", {zeros, ints({3}), ints({7})}).error(),
              HasSubstr("outside the extent 3"));
  EXPECT_THAT(fold("ScatterElements(a, b, c)", {zeros, ints({0}), ints({7, 8})}).error(), HasSubstr("do not fit"));
  EXPECT_THAT(fold("ScatterElements(a, b, c)", {zeros, ints({0}), floats({7})}).error(), HasSubstr("do not fit"));
  EXPECT_THAT(fold("GatherElements(a, b)", {ints({5, 6}), ints({1, 1, 0})})->ints, ElementsAre(6, 6, 5));
  EXPECT_THAT(fold("OneHot(a, b, c)", {ints({1, -1, 5}), ints({3}), ints({4, 9})})->ints,
              ElementsAre(4, 9, 4, 4, 4, 9, 4, 4, 4));
  EXPECT_THAT(fold("OneHot<axis = 0>(a, b, c)", {ints({1, 0}), ints({2}), ints({0, 1})})->ints,
              ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(fold("OneHot(a, b, c)", {ints({1}), ints({-3}), ints({0, 1})}).error(), HasSubstr("too large to fold"));
  EXPECT_THAT(fold("NonZero(a)", {ints({0, 3, 4})})->ints, ElementsAre(1, 2));
  EXPECT_THAT(fold("Tile(a, b)", {ints({1, 2}), ints({2})})->ints, ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(fold("Tile(a, b)", {ints({1, 2}), ints({int64_t(1) << 62})}).error(),
              HasSubstr("4611686018427387904 times"));
}

TEST(ConstantFolding, BoundsAndCurves) {
  EXPECT_THAT(fold("Clip(a, b)", {floats({-1, 2}), floats({0})})->floats, ElementsAre(0, 2));
  EXPECT_THAT(fold("Clip<max = 1.0>(a)", {floats({-1, 2})}, 6)->floats, ElementsAre(-1, 1));
  EXPECT_THAT(fold("Clip(a, b)", {ints({-1, 2}), ints({0})})->ints, ElementsAre(0, 2));
  EXPECT_THAT(fold("Clip(a, b)", {ints({-1, 2}), floats({0})}).error(), HasSubstr("of the operand's type"));
  EXPECT_THAT(fold("Max(a)", {ints({-1, 2})})->ints, ElementsAre(-1, 2));
  EXPECT_THAT(fold("Min(a, b, c)", {ints({-1, 2}), ints({1}), ints({0})})->ints, ElementsAre(-1, 0));
  EXPECT_THAT(fold("Cos(a)", {floats({0})})->floats, ElementsAre(1));
  EXPECT_THAT(fold("Sign(a)", {floats({-3, 0, 4})})->floats, ElementsAre(-1, 0, 1));
}

TEST(ConstantFolding, SlicesForwardsAndBackwards) {
  auto slice = [](int64_t start, int64_t end, int64_t step) {
    return fold("Slice(a, b, c, d, e)", {ints({1, 2, 3, 4}), ints({start}), ints({end}), ints({0}), ints({step})})
        ->ints;
  };
  EXPECT_THAT(slice(1, 3, 1), ElementsAre(2, 3));
  EXPECT_THAT(slice(-2, INT64_MAX, 1), ElementsAre(3, 4));
  EXPECT_THAT(slice(0, 4, 3), ElementsAre(1, 4));
  EXPECT_THAT(slice(-1, INT64_MIN, -1), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(slice(3, 0, -2), ElementsAre(4, 2));
  EXPECT_THAT(slice(3, 1, 1), ElementsAre());
}

/// PyTorch turns pads around this way: [n, 2], rows reversed, transposed, flattened.
TEST(ConstantFolding, ReversesPadTables) {
  HostTensor pads = *fold("Reshape(a, b)", {ints({1, 2, 3, 4}), ints({-1, 2})});
  pads = *fold("Slice(a, b, c, d, e)", {pads, ints({-1}), ints({INT64_MIN}), ints({0}), ints({-1})});
  EXPECT_THAT(pads.ints, ElementsAre(3, 4, 1, 2));
  pads = *fold("Transpose<perm = [1, 0]>(a)", {pads});
  EXPECT_THAT(pads.ints, ElementsAre(3, 1, 4, 2));
}

TEST(ConstantFolding, RefusesWhatIsOutside) {
  EXPECT_THAT(fold("Gather<axis = 0>(a, b)", {ints({5, 6}), ints({2})}).error(),
              HasSubstr("index 2 is outside the extent 2"));
  EXPECT_THAT(fold("Gather<axis = 3>(a, b)", {ints({5, 6}), ints({0})}).error(), HasSubstr("axis 3 is outside rank 1"));
  EXPECT_THAT(fold("Reshape(a, b)", {ints({1, 2, 3}), ints({2, -1})}).error(),
              HasSubstr("cannot reshape [3] to [2, 1]"));
  EXPECT_THAT(fold("Expand(a, b)", {ints({1}), ints({int64_t(1) << 40})}).error(), HasSubstr("too large"));
}

TEST(ConstantFolding, LooksAtPermutationsBeforeItUsesThem) {
  HostTensor table = *fold("Reshape(a, b)", {ints({1, 2, 3, 4}), ints({2, 2})});
  for (const char *perm : {"[5, 0]", "[0, 0]", "[-1, 0]", "[0]", "[0, 1, 2]", "[4611686018427387904, 0]"})
    EXPECT_THAT(fold(std::string("Transpose<perm = ") + perm + ">(a)", {table}).error(),
                HasSubstr("no permutation of 2 dimensions"))
        << perm;
  EXPECT_THAT(fold("Transpose<perm = [0]>(a)", {HostTensor::scalar(1)}).error(),
              HasSubstr("no permutation of 0 dimensions"));
}

TEST(ConstantFolding, TypesThatAreMixed) {
  HostTensor half = floats({0.5});
  EXPECT_THAT(fold("Range(a, b, c)", {HostTensor::scalar(0), HostTensor::scalar(2), half})->floats,
              ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_THAT(fold("Range(a, b, c)", {half, HostTensor::scalar(3), HostTensor::scalar(1)})->floats,
              ElementsAre(0.5, 1.5, 2.5));
  EXPECT_THAT(fold("Where(a, b, c)", {ints({1, 0}), ints({5}), floats({1e300})})->ints, ElementsAre(5, INT64_MAX));
  EXPECT_THAT(fold("Where(a, b, c)", {ints({0}), ints({5}), floats({NAN})})->ints, ElementsAre(INT64_MIN));
  EXPECT_THAT(fold("Reshape(a, b)", {ints({1, 2}), floats({2})}).error(), HasSubstr("shape must be integers"));
  EXPECT_THAT(fold("Expand(a, b)", {ints({1}), floats({2})}).error(), HasSubstr("shape must be integers"));
  EXPECT_THAT(fold("Unsqueeze(a, b)", {ints({1}), floats({0})}).error(), HasSubstr("axes must be integers"));
  EXPECT_THAT(fold("Slice(a, b, c)", {ints({1, 2}), floats({0}), ints({1})}).error(),
              HasSubstr("starts must be integers"));
}

/// Empty tensors have no elements to count, but loops run over their other extents.
TEST(ConstantFolding, EmptyTensorsOfManyRows) {
  HostTensor empty;
  empty.shape = {int64_t(1) << 62, 0};
  EXPECT_FALSE(HostTensor::fits(empty.shape));
  EXPECT_THAT(fold("Concat<axis = 1>(a, b)", {empty, empty}).error(), HasSubstr("is too large to fold"));
  EXPECT_THAT(fold("Gather<axis = 1>(a, b)", {empty, ints({})}).error(), HasSubstr("is too large to fold"));
  EXPECT_THAT(fold("Reshape<allowzero = 1>(a, b)", {ints({}), ints({int64_t(1) << 62, 0})}).error(),
              HasSubstr("cannot reshape"));
  EXPECT_THAT(fold("Unsqueeze(a, b)", {ints({1}), ints(std::vector<int64_t>(40, 0))}).error(),
              HasSubstr("up to rank 32"));
}

} // namespace
} // namespace sluice
