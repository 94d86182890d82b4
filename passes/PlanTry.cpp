// SPDX-License-Identifier: Apache-2.0
// Every try is planned like the first, on a copy of the module.
#include "passes/PlanTry.h"

#include "passes/plan/PlanAttribute.h"

#include <tuple>

using namespace mlir;
using namespace sluice;

/// What saves less than a fiftieth is not worth its rounding.
static constexpr double worthwhile = 0.98;

static auto partsOf(const PipelineOptions &options) {
  return std::tie(options.parts, options.partsAlong, options.stepParts, options.partsAbove, options.weightsAbove);
}

static int sharesAway(const PipelineOptions &options) { return options.stateShare + options.parameterShare; }

PlanTry::PlanTry(ModuleOp original, const PipelineOptions &options, PlanModule plan)
    : module(original.clone()), options(options) {
  ScopedDiagnosticHandler handler(original.getContext(), [&](Diagnostic &diagnostic) {
    said.push_back(std::move(diagnostic));
    return success();
  });
  result = plan(*module, options, cause);
}

double PlanTry::seconds() const { return planOfStep(*module).getSeconds().getValueAsDouble(); }

bool PlanTry::keepsPace() const {
  return seconds() * worthwhile <= planOfStep(*module).getKeepSeconds().getValueAsDouble();
}

int64_t PlanTry::budget() const { return succeeded(result) ? planOfStep(*module).getBudget() : cause.budget; }

bool PlanTry::isSettled() const {
  return succeeded(result) ? options.budget.empty() || keepsPace() : !cause.smallestBudget;
}

bool PlanTry::mayFit() const {
  return succeeded(result) || !cause.smallestBudget || *cause.smallestBudget <= cause.budget;
}

bool PlanTry::improve(PlanTry other) {
  if (failed(other.result)) {
    if (failed(result) && other.cause.smallestBudget)
      cause.smallestBudget = std::min(*cause.smallestBudget, *other.cause.smallestBudget);
    return false;
  }
  if (succeeded(result)) {
    const double enough = partsOf(options) == partsOf(other.options) ? seconds() : worthwhile * seconds();
    if (other.seconds() > enough || (other.seconds() == seconds() && sharesAway(options) <= sharesAway(other.options)))
      return false;
  }
  *this = std::move(other);
  return true;
}

LogicalResult PlanTry::put(ModuleOp into, PlanningFailure &cause) {
  for (Diagnostic &diagnostic : said)
    into.getContext()->getDiagEngine().emit(std::move(diagnostic));
  cause = this->cause;
  if (failed(result))
    return failure();
  into->setAttrs((*module)->getAttrDictionary());
  into.getBodyRegion().takeBody(module->getBodyRegion());
  return success();
}
