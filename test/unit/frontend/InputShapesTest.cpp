// SPDX-License-Identifier: Apache-2.0
// Where inputs and the output have their samples, by flags and by names; programs have them in front.
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// x [time, batch, 3] and h [layers, batch, 4], time and classes last: y [time, batch, 4].
std::string tagger(const std::string &x, const std::string &h) {
  return "g (" + x + " x, " + h +
         " h) => (float[5, B, 4] y) { axes = Constant<value_ints = [0]>()"
         " s = ReduceSum<keepdims = 1>(h, axes) m = MatMul(x, w) y = Add(m, s) }";
}

ImportedModel imported(const std::string &graph, const TrainingSpec &spec) {
  auto proto = parseModel(graph);
  addInitializer(proto, "w", {3, 4});
  return ImportedModel(proto, spec);
}

std::vector<int64_t> argument(ImportedModel &model, unsigned i) {
  return extents(model.function("step").getArgument(i));
}

TEST(InputShapes, TheOpenDimensionCalledBatchIsTheBatchWhereverItStands) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::TokenCrossEntropy;
  spec.batch = 8;
  for (const char *name : {"batch", "Batch_size", "n_batch"}) {
    const std::string batch = name;
    auto proto = parseModel(tagger("float[5, " + batch + ", 3]", "float[2, " + batch + ", 4]"));
    addInitializer(proto, "w", {3, 4});
    proto.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(1)
        ->set_dim_param(batch);
    ImportedModel model(proto, spec);
    ASSERT_TRUE(model.module) << model.error;
    EXPECT_THAT(argument(model, 0), ElementsAre(8, 5, 3));
    EXPECT_THAT(argument(model, 1), ElementsAre(8, 2, 4));
    EXPECT_THAT(argument(model, 2), ElementsAre(8, 5)); // the target
    EXPECT_THAT(model.report.remarks,
                ElementsAre(HasSubstr("samples lie along dimension 1 of 'x', 1 of 'h', 1 of 'y', as the file calls it"),
                            HasSubstr("1 tensor is trained")));
    EXPECT_THAT(extents(model.function("evaluate").getBody().front().getTerminator()->getOperand(2)),
                ElementsAre(8, 5, 4));
  }
}

TEST(InputShapes, FlagsSayWhereTheBatchIs) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::TokenCrossEntropy;
  spec.batch = 8;
  spec.batchDims = {{"x", 1}, {"h", 1}, {"y", 1}};
  auto model = imported(tagger("float[5, 2, 3]", "float[1, 2, 4]"), spec); // of which --batch replaces 2
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(argument(model, 0), ElementsAre(8, 5, 3));
  EXPECT_THAT(argument(model, 2), ElementsAre(8, 5));
  spec.batchDims.erase("y");
  EXPECT_THAT(imported(tagger("float[5, 2, 3]", "float[1, 2, 4]"), spec).error,
              HasSubstr("which does not begin with the batch of 8, so that there is no target for each sample; "
                        "--batch-dim y=K says where it has one"));
  spec.batchDims = {{"x", 3}};
  EXPECT_THAT(imported(tagger("float[5, 2, 3]", "float[1, 2, 4]"), spec).error,
              HasSubstr("--batch-dim x=3: the dimensions of 'x' are 0 to 2"));
  spec.batchDims = {{"z", 1}};
  EXPECT_THAT(imported(tagger("float[5, 2, 3]", "float[1, 2, 4]"), spec).error,
              HasSubstr("--batch-dim z: there are the inputs 'x', 'h' and the output 'y'"));
}

// Ids that are moved are checked in the data, too.
TEST(InputShapes, IdsWithTimeInFront) {
  TrainingSpec spec;
  spec.loss = AttachedLoss::TokenCrossEntropy;
  spec.batch = 8;
  spec.batchDims = {{"ids", 1}, {"mask", 1}, {"y", 1}};
  auto model =
      imported("g (int64[5, N] ids, bool[5, N] mask) => (float[5, N, 4] y) { e = Gather(w, ids)"
               " axes = Constant<value_ints = [2]>() m = Cast<to = 1>(mask) u = Unsqueeze(m, axes) y = Mul(e, u) }",
               spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(argument(model, 0), ElementsAre(8, 5));
  EXPECT_THAT(argument(model, 1), ElementsAre(8, 5));
  EXPECT_EQ(train::idLimitOf(*model.module, "ids").upper, 3);
}

TEST(InputShapes, SharedInputsHaveNoBatch) {
  const char *graph = "g (float[N, 3] x, float s, int64[2] rows) => (float[N, 4] y) { c = Mul(x, s) m = MatMul(c, w)"
                      " t = Gather(m, rows) axes = Constant<value_ints = [0]>()"
                      " u = ReduceSum<keepdims = 1>(t, axes) y = Add(m, u) }";
  TrainingSpec spec;
  spec.batch = 6;
  EXPECT_THAT(imported(graph, spec).error, HasSubstr("--input s=shared"));
  spec.shared = {"s", "rows"};
  auto model = imported(graph, spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(argument(model, 1), ElementsAre());
  EXPECT_THAT(argument(model, 2), ElementsAre(2));
  EXPECT_TRUE(train::isShared(*model.module, "s") && train::isShared(*model.module, "rows"));
  EXPECT_FALSE(train::isShared(*model.module, "x"));
  spec.shared = {"s", "rows", "x"};
  spec.dims = {{"N", 6}};
  EXPECT_THAT(imported(graph, spec).error, HasSubstr("all inputs are shared"));
  spec.shared = {"w"};
  EXPECT_THAT(imported(graph, spec).error, HasSubstr("--input w=shared: the inputs of output 'y' are 'x', "));
}

TEST(InputShapes, InputsWithoutABatchAreOneSample) {
  TrainingSpec spec;
  spec.batchDims = {{"x", TrainingSpec::noBatch}};
  spec.loss = AttachedLoss::TokenCrossEntropy;
  auto model = imported("g (float[5, 3] x) => (float[5, 4] y) { y = MatMul(x, w) }", spec);
  ASSERT_TRUE(model.module) << model.error;
  EXPECT_THAT(argument(model, 0), ElementsAre(1, 5, 3));
  EXPECT_THAT(argument(model, 1), ElementsAre(1, 5));
  EXPECT_THAT(imported("g (float[5, 3] x, float[2, 4] z) => (float[5, 4] y) { axes = Constant<value_ints = [0]>()"
                       " s = ReduceSum<keepdims = 1>(z, axes) m = MatMul(x, w) y = Add(m, s) }",
                       spec)
                  .error,
              HasSubstr("the batch of 1 that 'x' has"));
  spec.batch = 4;
  EXPECT_THAT(imported("g (float[5, 3] x) => (float[5, 4] y) { y = MatMul(x, w) }", spec).error,
              HasSubstr("--batch=4 conflicts with 1"));
}

/// A batch that nodes hold where --batch does not reach: said where the file's own would do, whatever node stumbles.
TEST(InputShapes, ABatchThatTheFileFixes) {
  TrainingSpec spec;
  spec.batch = 4;
  const char *way = "; the file fixes the batch at 2, and its nodes hold that number: export it with an open batch "
                    "(dynamic_shapes, dynamic_axes of PyTorch's older exporter), or leave out --batch=4";
  const std::string reshaped = "g (float[2, 6, 3] x) => (float[2, 6, 4] y) { flat = Constant<value_ints = [12, 3]>() "
                               "f = Reshape(x, flat) h = MatMul(f, w) back = Constant<value_ints = [2, 6, "
                               "4]>() y = Reshape(h, back) }",
                    expanded = "g (float[2, 3] x) => (float[2, 4] y) { s = Constant<value_ints = [2, 3]>() "
                               "e = Expand(x, s) y = MatMul(e, w) }",
                    pooled = "g (float[2, 6] x) => (float[4, 4] y) { s = Constant<value_ints = [4, 3]>() "
                             "f = Reshape(x, s) y = MatMul(f, w) }";
  EXPECT_THAT(imported(reshaped, spec).error,
              testing::AllOf(HasSubstr("cannot reshape [4, 6, 3] (72 elements) to [12, 3]"), testing::EndsWith(way)));
  EXPECT_THAT(imported(expanded, spec).error, testing::EndsWith(way));
  // The file's own batch would not do either.
  EXPECT_THAT(imported(pooled, spec).error, testing::Not(HasSubstr("the file fixes")));
  spec.batch = 2;
  EXPECT_EQ(imported(reshaped, spec).error, "");
}

} // namespace
} // namespace sluice
