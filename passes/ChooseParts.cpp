// SPDX-License-Identifier: Apache-2.0
// See ChooseParts.h.
#include "passes/ChooseParts.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;

namespace {

/// More parts than these save little beside what a part is not: weights, and what the rows are made of.
constexpr int64_t mostParts = 256, mostStepParts = 32;
/// Large ops touch this share of the bytes of the largest value, or more. It is the same at any budget, so that a
/// budget which a refusal names has the plan that it was found by.
constexpr int64_t shareInParts = 4;

class Choice {
public:
  Choice(ModuleOp module, const PipelineOptions &options, PlanModule plan, bool mayCutRows)
      : original(module), options(options), plan(plan), mayCutRows(mayCutRows), best(module, options, plan) {}

  void run() {
    if (best.isSettled())
      return;
    options.budget = std::to_string(best.budget()); // percentages are of the whole's keep
    const bool hasPlan = succeeded(best.result);
    tryWeights();
    tryStep(CutAlong::Batch);
    if (failed(best.result) || !best.keepsPace())
      tryStep(CutAlong::Image);
    if (!hasPlan && mayCutRows)
      tryRows();
  }

private:
  PlanTry tried(const PipelineOptions &with) { return {original, with, plan}; }

  /// Bytes of the largest value of all functions. Gradients, which are not there yet, are like what they are of.
  int64_t largestValue() {
    int64_t largest = 0;
    original.walk([&](Operation *op) {
      for (Value result : op->getResults())
        largest = std::max(largest, train::bytes(result.getType()));
    });
    return largest;
  }

  /// Rows of large weights cost next to nothing, and go with all other parts.
  void tryWeights() {
    const int64_t above = largestValue() / shareInParts;
    const bool anyLarge = llvm::any_of(original.getOps<train::VariableOp>(), [&](train::VariableOp variable) {
      return variable.getRole() == train::Role::Parameter && train::bytes(variable.getType()) > above;
    });
    if (!anyLarge)
      return;
    options.weightsAbove = above;
    best.improve(tried(options));
  }

  /// Twice as many parts until there is a plan, and while that helps, of all ops and of the large ones.
  void tryStep(CutAlong along) {
    const int64_t above = largestValue() / shareInParts;
    options.partsAlong = along;
    for (options.partsAbove = 0;; options.partsAbove = above) {
      for (options.stepParts = 2; options.stepParts <= mostStepParts; options.stepParts *= 2) {
        PlanTry parted = tried(options);
        const bool planned = succeeded(parted.result);
        if (!planned && !parted.cause.smallestBudget)
          break; // more parts than there is to cut
        if (!best.improve(std::move(parted)) && planned)
          break;
      }
      if (options.partsAbove == above)
        break;
    }
    options.stepParts = 1, options.partsAbove = 0;
  }

  /// The first number of parts that has a plan; more of them do no good where they need as much.
  void tryRows() {
    std::optional<int64_t> smallest;
    for (options.parts = 2; options.parts <= mostParts; options.parts *= 2) {
      PlanTry parted = tried(options);
      const std::optional<int64_t> needed = parted.cause.smallestBudget;
      if (best.improve(std::move(parted)) || !needed || (smallest && *needed >= *smallest))
        break;
      smallest = needed;
    }
  }

  ModuleOp original;
  PipelineOptions options;
  PlanModule plan;
  const bool mayCutRows;

public:
  PlanTry best;
};

} // namespace

PlanTry sluice::chooseParts(ModuleOp module, const PipelineOptions &options, PlanModule plan, bool mayCutRows) {
  Choice choice(module, options, plan, mayCutRows);
  choice.run();
  return std::move(choice.best);
}
