// SPDX-License-Identifier: Apache-2.0
// What leaves is a share of the bytes of what may: of states first, which travel once a step there and back, then of
// parameters, which are fetched for each use; where updates run at home, of both together, as then a gradient travels
// in their stead. Which share is fastest is looked for from the smallest one with a plan to the smallest one that keeps
// all activations, and beyond (HomeSearch.h), so that no plan that keeps them, of states alone or of both, is faster.
#include "passes/ChooseHomes.h"

#include "passes/HomeSearch.h"

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
      : module(module), options(options), plan(plan), best(module, withShare(options, 0), plan) {}

  void run() {
    if (best.isSettled())
      return;
    options.budget = std::to_string(best.budget()); // percentages are of the keep of what has no home elsewhere
    const std::optional<double> allHere = secondsOf(best);
    search(options, [&](HomeSearch &homes) { homes.run(); }, allHere);
    if (leaveTogether(options)) { // states alone, too, are one kind that must not be faster than all of them
      PipelineOptions states = options;
      states.choosesParameters = false;
      states.parameterShare = 0;
      search(states, [](HomeSearch &homes) { homes.runKeeping(); }, allHere);
    }
    if (failed(best.result))
      best.options = withShare(options, sharesOf(options));
    best.options.choosesParameters = options.choosesParameters;
  }

private:
  static std::optional<double> secondsOf(const PlanTry &tried) {
    return succeeded(tried.result) ? std::optional<double>(tried.seconds()) : std::nullopt;
  }

  void search(const PipelineOptions &with, llvm::function_ref<void(HomeSearch &)> run, std::optional<double> allHere) {
    const auto planned = [&](int share) {
      if (share == 0)
        return allHere;
      PlanTry tried(module, withShare(with, share), plan);
      const std::optional<double> seconds = secondsOf(tried);
      best.improve(std::move(tried));
      return seconds;
    };
    const auto keeps = [&](int share) {
      PipelineOptions keep = withShare(with, share);
      keep.strategy = "keep";
      keep.sketch = true;
      return succeeded(PlanTry(module, keep, plan).result);
    };
    HomeSearch homes(sharesOf(with), planned, keeps);
    run(homes);
  }

  ModuleOp module;
  PipelineOptions options;
  PlanModule plan;

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
