// SPDX-License-Identifier: Apache-2.0
// The share of zeros that a fused op's body lets expect.
#include "ir/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace sluice;

/// Of an op with one operand %s; the body ends in %y.
static double zerosOf(const std::string &body) {
  MLIRContext context;
  context.loadDialect<train::TrainDialect, func::FuncDialect, arith::ArithDialect>();
  auto module =
      parseSourceString<ModuleOp>("func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                                  "  %f = train.fused (%x : tensor<8xf32>) channels [] sums 0 -> "
                                  "(tensor<8xf32>) {\n  ^bb0(%s: f32):\n    %zero = arith.constant 0.0 : f32\n" +
                                      body + "    train.yield %y : f32\n  }\n  return %f : tensor<8xf32>\n}\n",
                                  &context);
  EXPECT_TRUE(module);
  double zeros = -1;
  if (module)
    module->walk([&](train::FusedOp op) { zeros = op.expectedZeros(0); });
  return zeros;
}

static const std::string relu = "    %p = arith.cmpf ogt, %s, %zero : f32\n"
                                "    %r = arith.select %p, %s, %zero : f32\n";

TEST(FusedZeros, FollowFromComparisonsAndProducts) {
  EXPECT_EQ(zerosOf("    %y = arith.addf %s, %s : f32\n"), 0);
  EXPECT_EQ(zerosOf(relu + "    %y = arith.mulf %r, %s : f32\n"), 0.5);
}

/// Each value is read twice by the next, so that one after the other there are 2^40 ways to the first.
TEST(FusedZeros, OfValuesThatManyReadAreFoundOnce) {
  std::string body = relu, last = "%r";
  for (int i = 0; i < 40; ++i) {
    const std::string scaled = "%a" + std::to_string(i), product = i == 39 ? "%y" : "%b" + std::to_string(i);
    body += "    " + scaled + " = arith.mulf " + last + ", %s : f32\n";
    body += "    " + product + " = arith.mulf " + last + ", " + scaled + " : f32\n";
    last = product;
  }
  EXPECT_NEAR(zerosOf(body), 1, 1e-9);
}
