// SPDX-License-Identifier: Apache-2.0
// What leaves is a share of the bytes of what may: of states first, which travel once a step there and back, then of
// parameters, which are fetched for each use; where updates run at home, of both together, as then a gradient travels
// in their stead. The least share with a plan is found by halving, as more of it never
// needs more memory; beyond it the time falls while less is done for activations, then rises with what travels.
#include "passes/ChooseHomes.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;

namespace {

/// Whether parameters leave with their states.
bool leaveTogether(const PipelineOptions &options) {
  return options.choosesStates && options.choosesParameters && options.updatesAtHome &&
         options.stateHome == Space::Host && options.parameterHome == Space::Host;
}

/// Of both, one after the other.
int sharesOf(const PipelineOptions &options) {
  return leaveTogether(options) || options.choosesStates != options.choosesParameters ? allShares : 2 * allShares;
}

PipelineOptions withShare(PipelineOptions options, int share) {
  if (leaveTogether(options)) {
    options.stateShare = options.parameterShare = share;
    return options;
  }
  if (options.choosesStates)
    options.stateShare = std::min(share, allShares);
  if (options.choosesParameters)
    options.parameterShare = std::max(0, share - (options.choosesStates ? allShares : 0));
  return options;
}

class Choice {
public:
  Choice(ModuleOp module, const PipelineOptions &options, PlanModule plan)
      : module(module), options(options), plan(plan), all(sharesOf(options)), best(module, with(0), plan) {}

  void run() {
    if (best.isSettled())
      return;
    options.budget = std::to_string(best.budget()); // percentages are of the keep of what has no home elsewhere
    const int least = succeeded(best.result) ? 0 : leastWithPlan();
    for (int more = 1, worse = 0; worse < 2 && least + more <= all; more *= 2)
      worse = best.improve({module, with(least + more), plan}) ? 0 : worse + 1;
  }

private:
  PipelineOptions with(int share) const { return withShare(options, share); }

  /// `all` where none has.
  int leastWithPlan() {
    int without = 0, least = all;
    if (!best.improve({module, with(all), plan})) {
      best.options = with(all);
      return all;
    }
    while (least - without > 1) {
      const int middle = (without + least) / 2;
      PlanTry half(module, with(middle), plan);
      const bool has = succeeded(half.result);
      best.improve(std::move(half));
      (has ? least : without) = middle;
    }
    return least;
  }

  ModuleOp module;
  PipelineOptions options;
  PlanModule plan;
  const int all;

public:
  PlanTry best;
};

} // namespace

PipelineOptions sluice::allOnDevice(PipelineOptions options) { return withShare(std::move(options), 0); }

void sluice::tellHomes(ModuleOp module) {
  int64_t states = 0, parameters = 0;
  StringRef home;
  for (auto variable : module.getOps<train::VariableOp>())
    if (variable.getHome()) {
      home = *variable.getHome();
      (variable.getRole() == train::Role::Optimizer ? states : parameters) += train::bytes(variable.getType());
    }
  if (!home.empty())
    module.emitRemark() << states << " bytes of optimizer states and " << parameters
                        << " of parameters have their home in " << factsOf(homeOf(home)).label;
}

PlanTry sluice::chooseHomes(ModuleOp module, const PipelineOptions &options, PlanModule plan) {
  Choice choice(module, options, plan);
  choice.run();
  return std::move(choice.best);
}
