// SPDX-License-Identifier: Apache-2.0
// Kernels that crash, give wrong results or do not exist are never chosen, and take no other with them.
#include "passes/kernels/HostTrial.h"
#include "ir/Sched.h"
#include "ir/Train.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <csignal>
#include <cstdlib>

using namespace mlir;
using namespace sluice;

namespace {

constexpr const char *text = R"(
func.func @step(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32> {
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64}
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  return %y : tensor<2x4x8x8xf32>
})";

struct Step {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<AlgorithmChoice> choices;

  /// One convolution that offers these names, fastest first.
  explicit Step(ArrayRef<const char *> names) {
    context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
    std::vector<KernelAlgorithm> offered;
    for (auto [i, name] : llvm::enumerate(names))
      offered.push_back({name, 1, 0, 1.0 + static_cast<double>(i), static_cast<int64_t>(1000 - i)});
    choices = *choicesOf(*module->getOps<func::FuncOp>().begin(), [&](Operation *) { return offered; });
    choices.front().chosen = 0;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const KernelAlgorithm &a : choices.front().offered)
      all.push_back(a.name);
    return all;
  }
};

bool run(const HostTrialCase &trial) {
  if (trial.name == "crashing")
    std::abort();
  if (trial.name == "dividing")
    raise(SIGFPE);
  return trial.name != "wrong";
}

TEST(HostTrial, DropsWhatDoesNotWork) {
  Step step({"crashing", "good", "wrong", "dividing", "better"});
  EXPECT_FALSE(everythingWorks(step.choices, true, run));
  EXPECT_EQ(step.names(), (std::vector<std::string>{"good", "better"}));
  EXPECT_TRUE(everythingWorks(step.choices, true, run));
}

TEST(HostTrial, TriesOnlyWhatMayBeUsed) {
  Step step({"fine", "crashing-unused"});
  EXPECT_TRUE(everythingWorks(step.choices, false, [](const HostTrialCase &trial) { return trial.name == "fine"; }));
  EXPECT_EQ(step.names().size(), 2u);
}

TEST(HostTrial, RefusesAnUnknownImplementation) {
  Step step({"jit:unknown", "blocked"});
  EXPECT_FALSE(everythingWorks(step.choices, false));
  EXPECT_EQ(step.names(), std::vector<std::string>{"blocked"});
}

TEST(HostTrial, ChoosesWhatIsLeft) {
  Step step({"jit:unknown too", "blocked"});
  ASSERT_TRUE(succeeded(chooseAlgorithms(step.choices, 0, false)));
  EXPECT_EQ(step.choices.front().offered[step.choices.front().chosen].name, "blocked");
}

} // namespace
