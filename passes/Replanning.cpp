// SPDX-License-Identifier: Apache-2.0
// What depends on the plan runs on copies of the module:
//  1. plan within the budget and place the program; plan with less by what the arena is too large, while that helps;
//  2. plan with the least memory for which the strategy has a plan, and place that.
// The program lies where its plan was packed (`places` of #train.plan), so that placing takes more only where the
// passes after planning make what the plan did not know of. Where it does, a remark and `rounds` of the plan say so. 2
// does not depend on the budget: its arena is what every budget from there on has a plan for, and none below; so a plan
// of 1 is not taken that a budget below that arena happens to have.
#include "passes/Replanning.h"

#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/strategies/Registry.h"

#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace sluice;

/// After this many tighter plans the placed arena should have fitted: each gives back what the last one was too large
/// by, half of what was given back before, and a 4096th of the budget at least.
static constexpr int maxReplans = 12;

/// Size of the placed host arena.
static int64_t hostBytes(ModuleOp module) {
  int64_t bytes = 0;
  for (auto program : module.getOps<sched::ProgramOp>())
    bytes = std::max<int64_t>(bytes, program.isPlaced() ? program.bytesOf(sched::Space::Host) : 0);
  return bytes;
}

/// Size of what the budget limits: the placed device arena, or both arenas where they are one memory.
static int64_t budgetedBytes(ModuleOp module, const PipelineOptions &options) {
  int64_t bytes = 0;
  for (auto program : module.getOps<sched::ProgramOp>())
    bytes = std::max<int64_t>(bytes, program.isPlaced() ? program.bytesOf(sched::Space::Device) : 0);
  return options.oneMemory ? bytes + hostBytes(module) : bytes;
}

static int64_t budgetOf(ModuleOp module) {
  const train::PlanAttr plan = planOfStep(module);
  return plan ? plan.getBudget() : 0;
}

/// A budget that is so little above the least memory may lie below what that is placed in: a 64th of it.
static int64_t negligible(int64_t memory) { return memory / 64; }

namespace {

/// A plan, placed: bytes of the device.
struct Placed {
  OwningOpRef<ModuleOp> module; ///< at the level that was asked for
  int64_t budget = 0;
  int64_t memory = 0; ///< that was planned with
  int64_t arena = 0;  ///< what the budget limits
};

/// All tries for one budget. Each is made on a clone of the linearized module, since applying a plan changes it for
/// good; `known` carries over what does not depend on the budget.
class Replanning {
public:
  Replanning(ModuleOp linearized, Level until, const PipelineOptions &options, PlanningFailure &cause)
      : linearized(linearized), until(until), options(options), cause(cause) {}

  OwningOpRef<ModuleOp> run();

private:
  std::optional<Placed> place(const std::string &budget, int64_t shrink);
  LogicalResult placeAnew(ModuleOp module);
  std::optional<Placed> planWithin(const std::string &budget);
  bool belowLeast(const Placed &placed);

  int plans = 0;        ///< within the budget that was asked for
  int64_t surprise = 0; ///< bytes that placing the first of them took on top
  const ModuleOp linearized;
  const Level until;
  const PipelineOptions &options;
  PlanningFailure &cause;             ///< of the last plan
  planner::KnownPlans known;          ///< that the budget does not change
  std::vector<Diagnostic> complaints; ///< about the last plan: only the user's own budget is the user's business
};

/// One plan of `shrink` bytes less than the budget. Without a budget nothing needs to be placed.
std::optional<Placed> Replanning::place(const std::string &budget, int64_t shrink) {
  cause = {};
  cause.known = &known;
  cause.rounds = std::max(plans, 1);
  complaints.clear();
  ScopedDiagnosticHandler handler(linearized->getContext(), [&](Diagnostic &diagnostic) {
    complaints.push_back(std::move(diagnostic));
    return success();
  });
  PipelineOptions planned = options;
  planned.budget = budget;
  planned.groupLaunches = false; // what a budget can do does not depend on it, see grouped()
  OwningOpRef<ModuleOp> module(ModuleOp(linearized).clone());
  Placed placed;
  const Level last = budget.empty() ? until : Level::Placed;
  for (Level level = Level::Linearized; level < last;) {
    const Level next = static_cast<Level>(static_cast<int>(level) + 1);
    PassManager pm(module->getContext());
    addPasses(pm, level, next, planned, shrink, &cause);
    if (failed(pm.run(*module)) && !(cause.placesFail && succeeded(placeAnew(*module))))
      return std::nullopt;
    level = next;
    if (level == until && level < last)
      placed.module = module->clone();
  }
  if (!budget.empty()) {
    placed.budget = budgetOf(*module);
    placed.memory = placed.budget - shrink;
    placed.arena = budgetedBytes(*module, options);
  }
  if (until == last)
    placed.module = std::move(module);
  return placed;
}

/// The program has lives that the plan did not foresee, so that its places cannot be taken: all are packed.
LogicalResult Replanning::placeAnew(ModuleOp module) {
  cause.placesFail = false;
  complaints.clear();
  module.walk([](sched::BufferOp buffer) {
    if (!buffer.outlivesStep())
      buffer.removeOffsetAttr();
  });
  PassManager pm(module.getContext());
  pm.addPass(createAssignSlots({0, options.hostBudget, options.sketch}, &cause));
  return pm.run(module);
}

/// Step 1. The last try has no memory left, so that the strategy says what it needs.
std::optional<Placed> Replanning::planWithin(const std::string &budget) {
  int64_t shrink = 0;
  for (int attempt = 0;; ++attempt) {
    ++plans;
    std::optional<Placed> placed = place(budget, shrink);
    if (!placed || placed->arena <= placed->budget)
      return placed;
    if (attempt == 0)
      surprise = placed->arena - placed->budget;
    const int64_t more = std::max({placed->arena - placed->budget, shrink / 2, placed->budget / 4096});
    shrink = attempt < maxReplans ? shrink + more : placed->budget;
  }
}

/// Whether a plan was found for less than what the least plan is placed in, which planning near the floor has asked
/// for. Then `cause` and `complaints` are those of a refusal.
bool Replanning::belowLeast(const Placed &placed) {
  if (known.least.empty() || options.budget.empty())
    return false;
  place(options.budget, placed.budget); // no memory left, so that the strategy says what it needs
  PlanningFailure refused = cause;
  std::vector<Diagnostic> why = std::move(complaints);
  const int64_t needed = refused.smallestBudget.value_or(0);
  bool below = false;
  if (refused.smallestBudget && placed.budget - needed < negligible(needed)) {
    const std::optional<Placed> least = place(std::to_string(needed), 0);
    below = least && least->arena > placed.budget;
  }
  cause = below ? refused : PlanningFailure();
  complaints = below ? std::move(why) : std::vector<Diagnostic>();
  return below;
}

// The least plan is placed for what the strategy says it needs, and planned once more for the budget that was asked
// for, within the same memory: reports and percentages are of that budget.
OwningOpRef<ModuleOp> Replanning::run() {
  std::optional<Placed> placed = planWithin(options.budget);
  if (options.sketch)
    return placed ? std::move(placed->module) : OwningOpRef<ModuleOp>();
  if (placed && belowLeast(*placed))
    placed.reset();
  if (!placed && cause.smallestBudget) {
    PlanningFailure refused = cause;
    std::vector<Diagnostic> why = std::move(complaints);
    placed = place(std::to_string(*refused.smallestBudget), 0); // step 2
    refused.smallestBudget = placed ? std::optional<int64_t>(placed->arena) : std::nullopt;
    if (placed && placed->arena <= refused.budget) {
      placed =
          place(options.budget, refused.budget - placed->memory); // the same plan, for the budget that was asked for
    } else {
      placed.reset();
      cause = refused;
      complaints = std::move(why);
    }
  }
  for (Diagnostic &complaint : complaints)
    linearized->getContext()->getDiagEngine().emit(std::move(complaint));
  if (placed && surprise > 0)
    ModuleOp(linearized).emitRemark() << "planned " << plans << " times: placing took " << surprise
                                      << " bytes more than the first plan had said";
  return placed ? std::move(placed->module) : OwningOpRef<ModuleOp>();
}

} // namespace

/// The same program with fewer launches, or as it is where it is not scheduled yet, or where packing it then takes more
/// than the budget, or without one more than before: no budget is too small because of groups.
static OwningOpRef<ModuleOp> grouped(OwningOpRef<ModuleOp> module, Level until, const PipelineOptions &options) {
  if (!options.groupLaunches || until < Level::Scheduled)
    return module;
  OwningOpRef<ModuleOp> other(module->clone());
  PassManager pm(module->getContext());
  addGrouping(pm, until);
  if (failed(pm.run(*other)))
    return {};
  const int64_t most = std::max(budgetedBytes(*module, options), options.budget.empty() ? 0 : budgetOf(*module));
  return budgetedBytes(*other, options) <= most && hostBytes(*other) <= hostBytes(*module) ? std::move(other)
                                                                                           : std::move(module);
}

// The proof is of what is given out alone: tries that are thrown away need none.
LogicalResult sluice::planWithinBudget(ModuleOp module, Level until, const PipelineOptions &options,
                                       PlanningFailure &cause) {
  OwningOpRef<ModuleOp> result = Replanning(module, until, options, cause).run();
  cause.known = nullptr; // it is gone
  if (result)
    result = grouped(std::move(result), until, options);
  if (!result)
    return failure();
  if (until == Level::Placed) { // against the budget that was asked for
    PassManager pm(module.getContext());
    addProof(pm, options.budget.empty() ? 0 : budgetOf(*result), options);
    if (failed(pm.run(*result)))
      return failure();
  }
  module->setAttrs((*result)->getAttrDictionary());
  module.getBodyRegion().takeBody((*result).getBodyRegion());
  return success();
}
