// SPDX-License-Identifier: Apache-2.0
// assign-slots, over all programs of the module:
//  1. the lifetime of every transient in steps (analysis/Lifetimes.h);
//  2. offsets of what outlives a step, one after the other, once for all programs;
//  3. offsets of transients, each program for itself, in the space above: those that the plan gave, after a check, then
//  the others by packing around them; all by packing where that is lower;
//  4. the sizes of the arenas, with the pool that copies share at the end of the host's.
// The plan has offsets already, for lives as it sees them. Streams, grouped launches and packed forms change lives, so
// that its offsets are checked here rather than believed, and what it does not know of is placed beside them.
#include "passes/Passes.h"
#include "passes/analysis/Lifetimes.h"
#include "passes/analysis/Storages.h"
#include "passes/planner/Pack.h"

#include "ir/PlanActions.h"
#include "runtime/PoolIndex.h"

#include "llvm/ADT/MapVector.h"

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

/// State of one run over a module: arenas grow from program to program, which share them.
struct AssignSlots : sluice::impl::AssignSlotsBase<AssignSlots> {
  using AssignSlotsBase::AssignSlotsBase;
  AssignSlots(AssignSlotsOptions options, PlanningFailure *cause) : AssignSlotsBase(std::move(options)), cause(cause) {}

  /// What outlives a step first: its slots are the same for all programs. Then each program's transients, arena by
  /// arena.
  void runOnOperation() override {
    placePersistent();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Lifetimes lifetimes(program);
      for (const ArenaFacts &facts : arenaTable)
        if (failed(placeTransients(program, lifetimes, sched::spaceOf(facts.space))))
          return signalPassFailure();
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
  LogicalResult placeTransients(ProgramOp program, const Lifetimes &lifetimes, sched::Space space);
  LogicalResult checkGiven(ArrayRef<BufferOp> owners, const std::vector<planner::PackItem> &items);
  planner::Packing around(ProgramOp program, std::vector<planner::PackItem> items, int64_t goodEnough) const;
  void choosePool(ProgramOp program);
  LogicalResult finish();

  Arena arenas[arenaCount];
  int64_t pool = 0;
  PlanningFailure *cause = nullptr; ///< of a failure, for who asks
};

/// Step 2. An input has as many bytes as the largest bucket of shapes asks for.
void AssignSlots::placePersistent() {
  llvm::MapVector<sched::Persistent, SmallVector<BufferOp>, std::map<sched::Persistent, unsigned>> slots;
  getOperation().walk([&](BufferOp buffer) {
    if (buffer.outlivesStep())
      slots[buffer.persistent()].push_back(buffer);
  });
  for (auto &[slot, buffers] : slots) {
    int64_t &base = arena(buffers.front().getSpace()).base, size = 0;
    for (BufferOp buffer : buffers) {
      place(buffer, base);
      size = std::max(size, slotBytes(buffer.getBytes()));
    }
    base += size;
  }
}

/// Of a buffer with an offset, for messages.
static std::string placeOf(BufferOp buffer) {
  const auto offset = static_cast<int64_t>(*buffer.getOffset());
  return ("'" + buffer.getName() + "' at bytes " + Twine(offset) + " to " +
          Twine(offset + slotBytes(buffer.getBytes())) + " in steps " + Twine(*buffer.getFirst()) + " to " +
          Twine(*buffer.getLast()))
      .str();
}

/// Whether the offsets that buffers have come from a plan for these lives.
LogicalResult AssignSlots::checkGiven(ArrayRef<BufferOp> owners, const std::vector<planner::PackItem> &items) {
  for (auto [owner, item] : llvm::zip(owners, items)) {
    BufferOp buffer = owner;
    const int64_t base = arena(buffer.getSpace()).base;
    if (item.offset && *item.offset < 0)
      return buffer.emitOpError() << "the plan puts " << placeOf(buffer) << ", below byte " << base
                                  << ", where what outlives the step ends; transients lie above it";
    if (item.offset && (base + *item.offset) % slotAlignment != 0)
      return buffer.emitOpError() << "the plan puts " << placeOf(buffer) << "; an offset is a multiple of "
                                  << slotAlignment;
  }
  const auto pair = planner::fixedOverlap(items);
  if (!pair)
    return success();
  if (cause)
    cause->placesFail = true;
  BufferOp one = owners[pair->first], other = owners[pair->second];
  auto diagnostic = one.emitOpError() << "the plan puts " << placeOf(one) << " and " << placeOf(other)
                                      << ", where they share bytes while both live";
  diagnostic.attachNote(other.getLoc()) << "leave one of the places out, and it is chosen here";
  return diagnostic;
}

/// Whether buffers live as long as the plan, which knows of no streams, says. To wait for one tensor is to wait for all
/// before it on its stream, so that packed forms are given up earlier; tensors that stay whole live as planned.
static bool livesAsPlanned(ProgramOp program) {
  const train::PlanAttr plan = train::attr::get<train::attr::Plan>(program);
  return plan && llvm::all_of(plan.getDecisions(), [](train::DecisionAttr decision) {
           return !train::factsOf(decision.getAction()).holdsForm;
         });
}

/// Offsets above the base: those that items have, with the others around them, or all anew where that is lower.
planner::Packing AssignSlots::around(ProgramOp program, std::vector<planner::PackItem> items,
                                     int64_t goodEnough) const {
  planner::countBeginnings(items);
  planner::PackOptions options;
  options.goodEnough = goodEnough;
  if (sketch)
    options.nodeLimit = planner::sketchNodes;
  planner::Packing given;
  given.load = planner::packLoad(items);
  size_t fixed = 0;
  for (const planner::PackItem &item : items) {
    fixed += item.offset.has_value();
    given.offsets.push_back(item.offset.value_or(-1));
    given.height = std::max(given.height, item.offset ? *item.offset + item.size : 0);
  }
  if (fixed == 0)
    return planner::pack(items, options);
  // The others go beside those that have places, where the planned height is good enough.
  const int64_t planned = given.height;
  if (fixed < items.size()) {
    planner::PackOptions beside = options;
    beside.goodEnough = std::max(goodEnough, planned);
    given = planner::pack(items, beside);
  }
  // The plan has searched for these places; only where lives have changed since may a new packing be lower.
  if (given.height <= std::max(given.load, goodEnough) || (given.height == planned && livesAsPlanned(program)))
    return given;
  for (planner::PackItem &item : items)
    item.offset.reset();
  planner::Packing anew = planner::pack(items, options);
  return anew.height < given.height ? anew : given;
}

/// Step 3.
LogicalResult AssignSlots::placeTransients(ProgramOp program, const Lifetimes &lifetimes, sched::Space space) {
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
    if (buffer.getOffset())
      item.offset = static_cast<int64_t>(*buffer.getOffset()) - arena(space).base;
    items.push_back(std::move(item));
    owners.push_back(buffer);
  }
  if (items.empty())
    return success();
  if (failed(checkGiven(owners, items)))
    return failure();
  // Packing may stop at the height that a program before has: the arena is as high as the highest of them.
  const planner::Packing packing = around(program, std::move(items), arena(space).transients);
  for (auto [buffer, offset] : llvm::zip(owners, packing.offsets))
    place(buffer, arena(space).base + offset);
  arena(space).transients = std::max(arena(space).transients, packing.height);
  arena(space).live = std::max(arena(space).live, packing.load);
  return success();
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
  // A host budget of 0 still allows the staging slots of the next batch, which are the base.
  const int64_t hostLimit = hostBudget == 0 ? arena(sched::Space::Host).base : hostBudget.getValue();
  return success(succeeded(check(sched::Space::Device, budget > 0 ? budget.getValue() : -1)) &&
                 succeeded(check(sched::Space::Host, hostLimit)));
}

} // namespace

std::unique_ptr<Pass> sluice::createAssignSlots(AssignSlotsOptions options, PlanningFailure *cause) {
  return std::make_unique<AssignSlots>(std::move(options), cause);
}
