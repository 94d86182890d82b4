// SPDX-License-Identifier: Apache-2.0
// assign-slots, over all programs of the module:
//  1. the lifetime of every transient in steps (analysis/Lifetimes.h);
//  2. offsets of what outlives a step, one after the other, once for all programs;
//  3. offsets of transients by packing, each program for itself, in the space above;
//  4. the sizes of the arenas, with the pool that copies share at the end of the host's.
#include "passes/Passes.h"
#include "passes/analysis/Lifetimes.h"
#include "passes/analysis/Storages.h"
#include "passes/planner/Pack.h"

#include "ir/Sched.h"
#include "runtime/PoolIndex.h"

#include <map>

namespace sluice {
#define GEN_PASS_DEF_ASSIGNSLOTS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;

namespace {

/// Bytes of one arena, from the start: first what outlives a step, then the tallest program.
struct Arena {
  int64_t base = 0, transients = 0, live = 0;
  int64_t size() const { return base + transients; }
};

struct AssignSlots : sluice::impl::AssignSlotsBase<AssignSlots> {
  using AssignSlotsBase::AssignSlotsBase;
  AssignSlots(AssignSlotsOptions options, PlanningFailure *cause) : AssignSlotsBase(std::move(options)), cause(cause) {}

  void runOnOperation() override {
    placePersistent();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Lifetimes lifetimes(program);
      for (const ArenaFacts &facts : arenaTable)
        packTransients(program, lifetimes, sched::spaceOf(facts.space));
      choosePool(program);
    }
    if (failed(finish()))
      signalPassFailure();
  }

private:
  Arena &arena(sched::Space space) { return arenas[static_cast<int>(space)]; }
  void place(BufferOp buffer, int64_t offset) {
    buffer.setOffsetAttr(Builder(&getContext()).getI64IntegerAttr(offset));
  }
  void placePersistent();
  void packTransients(ProgramOp program, const Lifetimes &lifetimes, sched::Space space);
  void choosePool(ProgramOp program);
  LogicalResult finish();

  Arena arenas[arenaCount];
  int64_t pool = 0;
  PlanningFailure *cause = nullptr; ///< of a failure, for who asks
};

/// Step 2.
void AssignSlots::placePersistent() {
  std::map<sched::Persistent, int64_t> offsets;
  getOperation().walk([&](BufferOp buffer) {
    if (!buffer.outlivesStep())
      return;
    auto [entry, added] = offsets.try_emplace(buffer.persistent(), arena(buffer.getSpace()).base);
    if (added)
      arena(buffer.getSpace()).base += slotBytes(buffer.getBytes());
    place(buffer, entry->second);
  });
}

/// Packing tries long lives early and late. Copies take steps that make lives of the same kernels longer here than the
/// plan, which found room for them, saw them: so that both try the same, time is counted in items that begin. Whose
/// lives meet stays as it is.
void countBeginnings(std::vector<planner::PackItem> &items) {
  std::vector<int64_t> begins;
  for (const planner::PackItem &item : items)
    begins.push_back(item.lower);
  llvm::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  for (planner::PackItem &item : items) {
    item.lower = llvm::lower_bound(begins, item.lower) - begins.begin();
    item.upper = llvm::lower_bound(begins, item.upper) - begins.begin();
  }
}

/// Step 3.
void AssignSlots::packTransients(ProgramOp program, const Lifetimes &lifetimes, sched::Space space) {
  std::vector<planner::PackItem> items;
  SmallVector<BufferOp> owners;
  Builder builder(&getContext());
  for (auto buffer : llvm::make_early_inc_range(program.getBody().getOps<BufferOp>())) {
    if (buffer.outlivesStep() || buffer.getSpace() != space)
      continue;
    Life life = lifetimes.of(buffer.getBuffer());
    if (life.empty()) {
      buffer.erase();
      continue;
    }
    buffer.setFirstAttr(builder.getI64IntegerAttr(life.first));
    buffer.setLastAttr(builder.getI64IntegerAttr(life.last));
    planner::PackItem item;
    item.id = buffer.getName().str();
    item.lower = life.first;
    item.upper = life.last + 1;
    item.size = slotBytes(buffer.getBytes());
    item.alignment = slotAlignment;
    items.push_back(std::move(item));
    owners.push_back(buffer);
  }
  if (items.empty())
    return;
  countBeginnings(items);
  planner::PackOptions options;
  options.goodEnough = arena(space).transients; // a lower program than the tallest one gains nothing
  planner::Packing packing = planner::pack(items, options);
  for (auto [buffer, offset] : llvm::zip(owners, packing.offsets))
    place(buffer, arena(space).base + offset);
  arena(space).transients = std::max(arena(space).transients, packing.height);
  arena(space).live = std::max(arena(space).live, packing.load);
}

/// Step 4: no more than all tensors of a step can need, which the pool holds until the step ends.
void AssignSlots::choosePool(ProgramOp program) {
  int64_t wanted = 0, most = 0;
  for (auto copy : program.getBody().getOps<CopyOp>()) {
    auto slot = copy.getTo().getDefiningOp<BufferOp>();
    if (slot.getSpace() != sched::Space::Spill)
      continue;
    wanted = std::max(wanted, sched::poolBytes(copy.getCodec()));
    most += slotBytes(slot.getBytes());
  }
  pool = std::max(pool, std::min(wanted, most + poolIndexBytes(most)));
}

/// Step 4.
LogicalResult AssignSlots::finish() {
  arena(sched::Space::Host).transients += pool;
  Builder builder(&getContext());
  const auto sizes = llvm::map_to_vector(arenas, [](const Arena &arena) { return arena.size(); });
  for (auto program : getOperation().getOps<ProgramOp>()) {
    program.setArenas(sizes);
    program.setBaseAttr(builder.getI64IntegerAttr(arena(sched::Space::Device).base));
    if (pool > 0)
      program.setPoolAttr(builder.getI64IntegerAttr(pool));
  }
  deviceBytes = arena(sched::Space::Device).size();
  hostBytes = arena(sched::Space::Host).size();
  liveBytes = arena(sched::Space::Device).base + arena(sched::Space::Device).live;
  auto check = [&](sched::Space space, int64_t limit) -> LogicalResult {
    if (limit < 0 || arena(space).size() <= limit)
      return success();
    if (cause)
      cause->status = 3;
    auto diagnostic = getOperation().emitError() << "placed " << sched::stringifySpace(space) << " arena needs "
                                                 << arena(space).size() << " bytes, the budget is " << limit;
    if (space == sched::Space::Host && pool > 0)
      diagnostic << "; " << pool << " of them are the pool of zvc";
    return diagnostic;
  };
  const int64_t hostLimit = hostBudget == 0 ? arena(sched::Space::Host).base : hostBudget.getValue();
  return success(succeeded(check(sched::Space::Device, budget > 0 ? budget.getValue() : -1)) &&
                 succeeded(check(sched::Space::Host, hostLimit)));
}

} // namespace

std::unique_ptr<Pass> sluice::createAssignSlots(AssignSlotsOptions options, PlanningFailure *cause) {
  return std::make_unique<AssignSlots>(std::move(options), cause);
}
