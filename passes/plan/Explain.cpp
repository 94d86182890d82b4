// SPDX-License-Identifier: Apache-2.0
// Formats `train.plan`, wherever it is: on @step, or on the scheduled program.
#include "passes/plan/Explain.h"

#include "ir/Buckets.h"
#include "ir/LossyPlan.h"
#include "ir/PlanActions.h"
#include "ir/TensorName.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/planner/Words.h"

#include "runtime/Printable.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace mlir;
using namespace sluice;

static std::string mebibytes(int64_t bytes) { return llvm::formatv("{0:F1} MiB", bytes / 1048576.0); }

static double inMilliseconds(FloatAttr seconds) { return seconds.getValueAsDouble() * 1e3; }

/// Nothing for none.
static std::string milliseconds(FloatAttr seconds) {
  return inMilliseconds(seconds) > 0 ? llvm::formatv("{0:F2}", inMilliseconds(seconds)).str() : std::string();
}

/// Whether the bytes are gone, or another form stands for them, between two accesses of a step.
static bool leavesBetween(train::DecisionAttr row) {
  if (row.getAction() == train::ActionKind::Recompute)
    return true; // without absences
  return llvm::any_of(row.getAbsences(), [](train::AbsenceAttr away) {
    switch (away.getKind()) {
    case AbsenceKind::Between:
      return true;
    case AbsenceKind::AroundEnd: // visitors are listed on their own
      return false;
    }
    return false;
  });
}

/// Updates at home: how many, the bytes of their gradients, and how many states they change.
struct HomeUpdatesSum {
  int64_t count = 0, bytes = 0, states = 0;
};
static HomeUpdatesSum updatesAtHome(ModuleOp module) {
  HomeUpdatesSum sum;
  module.walk([&](train::UpdateOp update) {
    if (!update.isAtHome())
      return;
    ++sum.count;
    sum.bytes += train::bytes(train::heldTensor(update.getGradient().getType()));
    sum.states += static_cast<int64_t>(update.getStates().size());
  });
  return sum;
}

/// How many variables are at home elsewhere, a line for states and one for parameters; what is updated there, and how
/// many are shares.
static std::string explainHomes(ModuleOp module) {
  std::map<std::pair<Space, bool>, std::pair<int64_t, int64_t>> away; // number and bytes
  for (auto variable : module.getOps<train::VariableOp>())
    if (variable.getHome()) {
      auto &[count, bytes] = away[{variable.arena(), variable.getRole() != train::Role::Optimizer}];
      ++count, bytes += train::bytes(variable.getType());
    }
  std::string text;
  const HomeUpdatesSum updates = updatesAtHome(module);
  for (auto [of, sum] : away)
    text += std::to_string(sum.first) + (of.second ? " parameters of " : " optimizer states of ") +
            mebibytes(sum.second) + " are at home in " + factsOf(of.first).label +
            (of.second                     ? ", each on the device around the ops that use it\n"
             : updates.states == sum.first ? ", where they are updated\n"
                                           : ", each on the device around its update\n");
  int64_t shares = 0, bytes = 0;
  for (auto variable : module.getOps<train::VariableOp>())
    if (variable.isShare())
      ++shares, bytes += train::bytes(variable.wholeType());
  if (shares > 0)
    text += std::to_string(shares) + " parameters of " + mebibytes(bytes) +
            " are in shares of all ranks, each whole on the device around the ops that use it\n";
  if (updates.count > 0)
    text +=
        std::to_string(updates.count) + " gradients of " + mebibytes(updates.bytes) + " go home for updates there\n";
  return text;
}

/// How many variables lie in each form of fewer bits, a line each.
static std::string explainForms(ModuleOp module) {
  struct Sum {
    int count = 0;
    int64_t bytes = 0, floats = 0;
  };
  std::map<std::string, Sum> sums;
  for (auto variable : module.getOps<train::VariableOp>())
    if (const auto quantized = train::attr::get<train::attr::Quantized>(variable)) {
      Sum &sum = sums[quantized.form().name()];
      ++sum.count;
      sum.bytes += train::bytes(variable.getType());
      sum.floats += 4 * ShapedType::getNumElements(quantized.getShape());
    }
  std::string text;
  for (const auto &[name, sum] : sums)
    text += "weights held fixed: " + std::to_string(sum.count) + " in " + name + ", " + mebibytes(sum.bytes) +
            " instead of " + mebibytes(sum.floats) + "; their floats are made in front of each use\n";
  return text;
}

/// Whose plan it is, of several.
static std::string explainBuckets(ModuleOp module) {
  const auto buckets = train::bucketsOf(module);
  return buckets.size() == 1
             ? ""
             : (train::hasTurns(module) ? "the plan of turn " : "the plan of the largest shape, ") +
                   printable(buckets.back().name) + "; each of the others has its own in the same arena\n";
}

std::string sluice::gapText(train::PlanAttr plan) {
  const double seconds = plan.getSeconds().getValueAsDouble(), bound = plan.getLowerBound().getValueAsDouble();
  if (!(bound > 0) || !std::isfinite(bound))
    return {};
  return llvm::formatv(", at most {0:F1} % above the fastest plan", 100 * std::max(0.0, seconds / bound - 1));
}

std::string sluice::explain(ModuleOp module) {
  const train::PlanAttr plan = planOfStep(module);
  if (!plan)
    return "no plan at this level; use --emit=planned or a later one\n";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << explainBuckets(module);
  const char *layout = "{0,-32} {1,-36} {2,12} {3,10}  {4,-14} {5,9}  {6}\n";
  out << llvm::formatv(layout, "tensor", "node", "bytes", "ops", "action", "cost ms", "reason");
  const train::LossyPlan lossy = train::lossyPlanOf(module);
  int64_t freed = 0, idle = 0;
  for (train::DecisionAttr row : plan.getDecisions()) {
    StringRef action =
                  train::isGathered(module, row) ? StringRef("gather") : train::stringifyActionKind(row.getAction()),
              codec = row.getCodec();
    std::string named = (action + (codec.empty() ? "" : " ") + codec).str(), reason = row.getReason().str();
    if (std::string stall = milliseconds(row.getStall()); !stall.empty())
      reason += (reason.empty() ? "" : "; ") + ("compute waits " + stall + " ms for it");
    if (row.getFreesNothing()) {
      reason += (reason.empty() ? "" : "; ") + std::string("FREES NOTHING: the plan's peak has room for it");
      ++idle;
    }
    if (const train::LossyTensor *tensor = lossy.find(row.getStorage().getValue()); tensor && tensor->error > 0)
      reason += (reason.empty() ? "" : "; ") + ("error " + shortNumber(tensor->error));
    std::string life = std::to_string(row.getFirst()) + ".." + std::to_string(row.getLast());
    out << llvm::formatv(layout, printable(row.getStorage().getValue().take_front(32).str()),
                         printable(row.getNode().getValue().take_front(36).str()), row.getBytes(), life, named,
                         milliseconds(row.getSeconds()), reason);
    freed += leavesBetween(row) ? row.getBytes() : 0;
  }
  out << "\nstrategy " << plan.getStrategy().getValue() << ": " << mebibytes(freed)
      << " of tensors leave the device in between\n";
  out << (plan.getRounds() == 1
              ? "planned once"
              : llvm::formatv("planned {0} times, because placing took more than the plan had said", plan.getRounds())
                    .str())
      << "\n";
  if (idle)
    out << idle << (idle == 1 ? " action frees" : " actions free") << " nothing that the plan's peak needs\n";
  out << llvm::formatv(
      "keep needs {0}, of which {1} live through the whole step; no plan of whole tensors goes below {2}\n",
      mebibytes(plan.getKeepArena()), mebibytes(plan.getBase()), mebibytes(plan.getFloor()));
  out << explainHomes(module) << explainForms(module);
  if (auto parts = module->getAttrOfType<StringAttr>(train::partsAttribute))
    out << printable(parts.getValue().str()) << ", one after the other, forward and backward\n";
  if (lossy.budget > 0)
    out << "expected error of the gradients: " << shortNumber(lossy.error) << " of " << shortNumber(lossy.budget)
        << ", the root of the sum of squares; "
        << (lossy.usual ? "where --profile does not say them, errors are what codecs usually do\n"
                        : "errors of single tensors are those of --profile\n");
  out << llvm::formatv("predicted step: {0:F1} ms (keep {1:F1} ms, lower bound {2:F1} ms{3})\n",
                       inMilliseconds(plan.getSeconds()), inMilliseconds(plan.getKeepSeconds()),
                       inMilliseconds(plan.getLowerBound()), gapText(plan));
  return text;
}
