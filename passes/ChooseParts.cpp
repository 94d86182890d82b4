// SPDX-License-Identifier: Apache-2.0
// See ChooseParts.h. Every try is planned like the whole, on a copy of the module.
#include "passes/ChooseParts.h"

#include "passes/plan/PlanAttribute.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;

namespace {

/// More parts than these save little beside what a part is not: weights, and what the rows are made of.
constexpr int64_t mostParts = 256, mostStepParts = 32;
/// Large ops touch this share of the bytes of the largest value, or more. It is the same at any budget, so that a
/// budget which a refusal names has the plan that it was found by.
constexpr int64_t shareInParts = 4;
constexpr double worthwhile = 0.98;

/// One module with all that was said about it.
struct Try {
  OwningOpRef<ModuleOp> module;
  LogicalResult result = failure();
  PlanningFailure cause;
  std::vector<Diagnostic> said;

  /// Predicted seconds of a step.
  double seconds() const { return planOfStep(*module).getSeconds().getValueAsDouble(); }
  bool keepsPace() const { return seconds() * worthwhile <= planOfStep(*module).getKeepSeconds().getValueAsDouble(); }
};

class Choice {
public:
  Choice(ModuleOp module, const PipelineOptions &options, PlanModule plan)
      : original(module.clone()), options(options), plan(plan) {
    best = tried(options);
  }

  void run() {
    if (succeeded(best.result) ? options.budget.empty() || best.keepsPace() : !best.cause.smallestBudget)
      return;
    const int64_t budget = succeeded(best.result) ? planOfStep(*best.module).getBudget() : best.cause.budget;
    options.budget = std::to_string(budget); // percentages are of the whole's keep
    const bool hasPlan = succeeded(best.result);
    tryWeights();
    tryStep(CutAlong::Batch);
    if (failed(best.result) || !best.keepsPace())
      tryStep(CutAlong::Image);
    if (!hasPlan)
      tryRows();
  }

  Try best;

private:
  Try tried(const PipelineOptions &with) {
    Try made;
    made.module = original->clone();
    ScopedDiagnosticHandler handler(original->getContext(), [&](Diagnostic &diagnostic) {
      made.said.push_back(std::move(diagnostic));
      return success();
    });
    made.result = plan(*made.module, with, made.cause);
    return made;
  }

  /// Returns whether it was taken. Of tries that all fail the smallest budget is known then.
  bool take(Try other) {
    if (failed(other.result)) {
      if (failed(best.result) && other.cause.smallestBudget)
        best.cause.smallestBudget = std::min(*best.cause.smallestBudget, *other.cause.smallestBudget);
      return false;
    }
    if (succeeded(best.result) && other.seconds() > worthwhile * best.seconds())
      return false;
    best = std::move(other);
    return true;
  }

  /// Bytes of the largest value of all functions. Gradients, which are not there yet, are like what they are of.
  int64_t largestValue() {
    int64_t largest = 0;
    original->walk([&](Operation *op) {
      for (Value result : op->getResults())
        largest = std::max(largest, train::bytes(result.getType()));
    });
    return largest;
  }

  /// Rows of large weights cost next to nothing, and go with all other parts.
  void tryWeights() {
    const int64_t above = largestValue() / shareInParts;
    const bool anyLarge = llvm::any_of(original->getOps<train::VariableOp>(), [&](train::VariableOp variable) {
      return variable.getRole() == train::Role::Parameter && train::bytes(variable.getType()) > above;
    });
    if (!anyLarge)
      return;
    options.weightsAbove = above;
    take(tried(options));
  }

  /// Twice as many parts until there is a plan, and while that helps, of all ops and of the large ones.
  void tryStep(CutAlong along) {
    const int64_t above = largestValue() / shareInParts;
    options.partsAlong = along;
    for (options.partsAbove = 0;; options.partsAbove = above) {
      for (options.stepParts = 2; options.stepParts <= mostStepParts; options.stepParts *= 2) {
        Try parted = tried(options);
        const bool planned = succeeded(parted.result);
        if (!planned && !parted.cause.smallestBudget)
          break; // more parts than there is to cut
        if (!take(std::move(parted)) && planned)
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
      Try parted = tried(options);
      const std::optional<int64_t> needed = parted.cause.smallestBudget;
      if (take(std::move(parted)) || !needed || (smallest && *needed >= *smallest))
        break;
      smallest = needed;
    }
  }

  OwningOpRef<ModuleOp> original;
  PipelineOptions options;
  PlanModule plan;
};

} // namespace

LogicalResult sluice::chooseParts(ModuleOp module, const PipelineOptions &options, PlanModule plan,
                                  PlanningFailure &cause) {
  Choice choice(module, options, plan);
  choice.run();
  Try &best = choice.best;
  for (Diagnostic &diagnostic : best.said)
    module.getContext()->getDiagEngine().emit(std::move(diagnostic));
  cause = best.cause;
  if (failed(best.result))
    return failure();
  module->setAttrs((*best.module)->getAttrDictionary());
  module.getBodyRegion().takeBody(best.module->getBodyRegion());
  return success();
}
