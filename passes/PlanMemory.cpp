// SPDX-License-Identifier: Apache-2.0
// plan-memory, in order:
//  1. build planner::Problem from the ops of @step and the storages that their values share;
//  2. plan `keep` without a limit: its arena is what percentages refer to;
//  3. run the strategy within the budget; a checked plan becomes the attribute `train.plan`, see PlanAttrs.td;
//  4. pack that plan once more, as tightly as can be: the offsets are handed on;
//  5. so are those of @evaluate and of the decode step, whose plans are keep's.
// Buckets of shapes have a step and an evaluation each, all within one budget: percentages refer to the largest keep,
// and a budget is too small by what the neediest of them asks for.
// The planner knows no MLIR: this pass and what lies in passes/plan are all that stands between the two, so that
// strategies can be read beside their papers and tested on plain numbers.
#include "ir/Buckets.h"
#include "passes/Passes.h"
#include "passes/plan/Budget.h"
#include "passes/plan/HostBudget.h"
#include "passes/plan/PackedCopies.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/plan/PlanRequest.h"
#include "passes/plan/WantedStep.h"
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Errors.h"
#include "passes/planner/Profile.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"

namespace sluice {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// The neediest of the steps for which the budget is too small.
struct TooSmall {
  int64_t smallest = 0;
  func::FuncOp step; ///< null: none
  PlanSummary summary;
  void add(int64_t bytes, const WantedStep &one) {
    if (!step || bytes > smallest)
      smallest = bytes, step = one.step, summary = one.summary;
  }
};

struct PlanMemory : sluice::impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;
  PlanMemory(PlanMemoryOptions options, PlanningFailure *cause) : PlanMemoryBase(std::move(options)), cause(cause) {}

  void runOnOperation() override {
    const bool negative = hostBudget < -1;
    if (negative)
      getOperation().emitError() << "host-budget=" << hostBudget.getValue()
                                 << " is below -1, which stands for no limit";
    if (negative || failed(run()))
      signalPassFailure();
  }

  /// Steps 1 to 5. keep and evaluations are planned first: percentages refer to the largest arena of all, and a budget
  /// that an evaluation does not fit is too small whatever the steps' plans are.
  LogicalResult run() {
    ModuleOp module = getOperation();
    if (stepsOf(module).empty())
      return module.emitError() << "needs a function @step";
    if (failed(checkKernels(module)))
      return failure();
    Result<planner::Profile> known = planner::loadDevice(device, profile, home);
    if (!known)
      return module.emitError() << known.error();
    Result<PlanRequest> asked = parsePlanRequest(strategy, allowLossy, oneMemory, errorBudget, home);
    if (!asked)
      return failWith(module, 2) << asked.error();
    ProblemOptions asks{target, oneMemory, asked->rate, asked->errorBudget, home, ranks, {}};
    if (!interconnect.empty()) {
      Result<planner::Interconnect> between = planner::loadInterconnect(interconnect);
      if (!between)
        return module.emitError() << between.error();
      asks.between = std::move(*between);
    }
    std::vector<WantedStep> all;
    if (failed(planWithoutBudget(
            module, *known, asks, [&](const auto &problem, const auto &name) { return keepOf(problem, name); }, all)))
      return failure();
    TooSmall tooSmall;
    for (WantedStep &one : all)
      if (failed(readBudget(one.summary)) || failed(planStep(one, *asked, tooSmall)))
        return failure();
    return tooSmall.step ? reportInfeasible(tooSmall, asked->name) : success();
  }

  /// Steps 3 to 5. `shrink` is taken off for the strategy alone; figures in messages are those of the budget that was
  /// asked for. A step for which it is too small is noted: another one may need more.
  LogicalResult planStep(WantedStep &one, const PlanRequest &request, TooSmall &tooSmall) {
    ModuleOp module = getOperation();
    const planner::Problem &problem = one.problem;
    PlanSummary &summary = one.summary;
    const int64_t evaluation = one.evaluationBytes(), hostRoom = roomOfHost();
    const auto copied = [&](const planner::Plan &plan) { return hostBytes(problem, request, plan); };
    planner::Options options = request.options;
    const bool isAlone = stepsOf(module).size() == 1;
    options.sketch = sketch;
    options.known = cause && hostBudget < 0 && isAlone ? cause->known : nullptr; // else problems differ
    planner::Answer answer =
        planWithinHost(problem, std::max(summary.budget, evaluation) - shrink, request.name, options, hostRoom, copied);
    if (auto *refused = std::get_if<planner::Refused>(&answer))
      return failWith(module, 2) << refused->reason << (oneMemory && home == Space::Host ? secondMemoryHint : "");
    if (auto *infeasible = std::get_if<planner::Infeasible>(&answer)) {
      tooSmall.add(std::max(infeasible->smallestMemory, evaluation), one);
      return success();
    }
    auto &plan = std::get<planner::Plan>(answer);
    if (int64_t bytes = copied(plan); bytes > hostRoom)
      return reportHostTooSmall(request.name, bytes);
    if (summary.budget < evaluation) {
      tooSmall.add(evaluation, one);
      return success();
    }
    packCopies(problem, request, plan);
    if (failed(checkLossy(plan, request.options)) || failed(checkErrors(problem, plan)))
      return failure();
    if (Status whole = checkPlan(problem, plan, plan.arenaBytes); !whole) // `codec=` came after the strategy's
      return module.emitError() << "the plan of strategy '" << request.name << "' fails the checker: " << whole.error();
    notePlan(one.step, one.storages, problem, plan, request, summary);
    for (EvaluationPlan &each : one.evaluations)
      each.note(summary, std::max(attr::get<attr::Plan>(one.step).getArena(), evaluation));
    return success();
  }

  /// Gives a step its plan, and the summary what the plan takes. What is lossy is told of @step.
  void notePlan(func::FuncOp step, const Storages &storages, const planner::Problem &problem, const planner::Plan &plan,
                const PlanRequest &request, PlanSummary &summary) {
    ModuleOp module = getOperation();
    planner::Timeline timeline = simulate(problem, plan);
    summary.seconds = timeline.makespan;
    summary.longest = longestTask(timeline);
    summary.lowerBound = planner::actionBound(problem, summary.budget, planner::allowedActions(request.options));
    std::vector<std::string> nodes;
    for (const planner::Buffer &buffer : problem.buffers)
      nodes.push_back(storages[buffer.id].values.empty() ? "" : nodeName(storages[buffer.id].values.front().getLoc()));
    const auto codecs = [&](Codec codec) { return request.withParameters(codec); };
    if (step == stepsOf(module).front())
      setLossyPlan(module, lossyPlan(problem, plan));
    summary.persistent = persistentBytes(module);
    summary.rounds = cause ? cause->rounds : 1;
    attr::set<attr::Plan>(step, planAttribute(step.getContext(), problem, plan, placeLives(problem, plan), summary,
                                              actionCosts(problem, plan, timeline), nodes, codecs));
  }

  /// Of the host arena, that outlive a step: the slots of the next batch, and variables.
  int64_t hostBase() { return stagingBytes(getOperation()) + persistentBytes(getOperation(), Space::Host); }

  /// Host memory for what is copied out.
  int64_t roomOfHost() {
    if (hostBudget < 0)
      return planner::noBudget;
    return hostBudget == 0 ? 0 : hostBudget - hostBase();
  }

  LogicalResult reportHostTooSmall(StringRef name, int64_t copied) {
    return failWith(getOperation(), 3) << "a host budget of " << hostBudget.getValue()
                                       << " bytes is too small for strategy '" << name << "': its plan copies "
                                       << copied << " bytes to the host, beside batch slots and states of "
                                       << hostBase() << "; raise --host-budget or --memory-budget";
  }

  LogicalResult readBudget(PlanSummary &summary) {
    if (budget.empty())
      return success();
    auto bytes = parseBudget(budget, summary.keepArena, summary.base);
    if (!bytes)
      return getOperation().emitError() << "'" << budget << "' is no budget; write bytes, 600MiB, 8GiB, 40% or 40%act";
    summary.budget = *bytes;
    return success();
  }

  /// keep's plan of a function without a budget, packed as tightly as can be: once, where planning is repeated.
  planner::Answer keepOf(const planner::Problem &problem, const std::string &function) {
    planner::KnownPlans none;
    const auto [found, isNew] = (cause && cause->known ? *cause->known : none).keep.try_emplace(function);
    planner::Options options;
    options.sketch = sketch && !StringRef(budget).contains('%'); // else the budget is a share of it
    if (isNew)
      found->second = runStrategy(problem, planner::noBudget, "keep", options);
    return found->second;
  }

  InFlightDiagnostic failWith(ModuleOp module, int status) {
    if (cause)
      cause->status = status;
    return module.emitError();
  }

  /// The last guard of --allow-lossy, whatever a strategy does.
  LogicalResult checkLossy(const planner::Plan &plan, const planner::Options &options) {
    for (const planner::Decision &d : plan.decisions) {
      const planner::Ability used = factsOf(d.action).rounds ? planner::Ability(d.action) : planner::Ability(d.codec);
      if (!planner::lossyActions().has(used) || options.allowLossy.has(used))
        continue;
      const std::string name = planner::abilityName(used);
      return failWith(getOperation(), 2) << "strategy '" << strategy << "' uses " << name
                                         << ", which is lossy; allow it with --allow-lossy=" << name;
    }
    if (!plan.alternatives.empty() && !options.allowLossy.has(planner::Ability::algorithms()))
      return failWith(getOperation(), 2) << "strategy '" << strategy
                                         << "' chooses kernels, whose results differ by rounding; allow it with "
                                            "--allow-lossy=algorithms";
    return success();
  }

  /// What `codec=` has made of copies counts, too.
  LogicalResult checkErrors(const planner::Problem &problem, const planner::Plan &plan) {
    if (planner::withinErrorBudget(problem, plan))
      return success();
    return failWith(getOperation(), 2) << "strategy '" << strategy << "' is expected to change the gradients by "
                                       << shortNumber(planner::totalError(problem, plan))
                                       << " of themselves, the error budget is " << shortNumber(*problem.errorBudget)
                                       << "; raise it, or leave codecs to the strategy mixed";
  }

  /// Who does not ask for the number as such finds it in a note.
  LogicalResult reportInfeasible(const TooSmall &tooSmall, StringRef name) {
    ModuleOp module = getOperation();
    const PlanSummary &summary = tooSmall.summary;
    const int64_t smallest = slotBytes(tooSmall.smallest);
    func::FuncOp step = tooSmall.step;
    auto diagnostic = failWith(module, 3);
    diagnostic << "a budget of " << summary.budget << " bytes is too small for strategy '" << name << "'"
               << ofBucket(module, step.getSymName());
    if (hostBudget >= 0)
      diagnostic << " with a host budget of " << hostBudget.getValue();
    diagnostic << " (keep needs " << summary.keepArena << ", of which " << summary.base
               << " live through the whole step; no plan of whole tensors goes below " << summary.floor << ")";
    if (cause) {
      cause->budget = summary.budget;
      cause->smallestBudget = smallest;
    } else {
      diagnostic.attachNote() << "smallest feasible budget: " << smallest << " bytes";
    }
    return diagnostic;
  }

  PlanningFailure *cause = nullptr; ///< of a failure, for who asks
};

} // namespace

std::unique_ptr<Pass> sluice::createPlanMemory(PlanMemoryOptions options, PlanningFailure *cause) {
  return std::make_unique<PlanMemory>(std::move(options), cause);
}
