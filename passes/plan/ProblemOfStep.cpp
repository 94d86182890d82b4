// SPDX-License-Identifier: Apache-2.0
// Builds planner::Problem, see ProblemOfStep.h.
#include "passes/plan/ProblemOfStep.h"

#include "passes/plan/BufferActions.h"
#include "passes/planner/Packings.h"
#include "passes/planner/Simulate.h"

#include "ir/RuntimeTypes.h"
#include "runtime/Collective.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Of an op that some ranks take together; 0: all do.
int ranksThatMeet(Operation *op) {
  if (auto statistics = dyn_cast<SynchronizeStatisticsOp>(op))
    return static_cast<int>(statistics.getRanks());
  auto sums = dyn_cast<SynchronizeSumsOp>(op);
  return sums ? static_cast<int>(sums.getRanks()) : 0;
}

/// The bytes of which each of the ranks that meet sends or gets its share: of a norm those of its sums alone, the ends
/// of parts besides being few.
int64_t gatheredBytes(Operation *op) {
  if (isa<SharesNormOp>(op))
    return static_cast<int64_t>(leastNormParts * sizeof(double));
  auto scattered = dyn_cast<ReduceScatterOp>(op);
  int64_t sum = 0;
  for (Value value : scattered ? ValueRange(scattered.getXs()) : ValueRange(op->getResults()))
    sum += bytes(value.getType());
  return sum;
}

/// The last op that touches a gradient sends it home.
void sendGradients(planner::Problem &problem) {
  for (auto [b, buffer] : llvm::enumerate(problem.buffers))
    if (buffer.born)
      for (planner::Op &op : llvm::reverse(problem.ops))
        if (llvm::is_contained(op.reads, b) || llvm::is_contained(op.writes, b)) {
          op.sends.push_back(static_cast<int>(b));
          break;
        }
}

/// By gradient's value: the first position after compute has waited for its use at home.
llvm::DenseMap<Value, int> endsOfUses(func::FuncOp step, const llvm::DenseMap<Operation *, int> &positions) {
  llvm::DenseMap<Value, int> ends;
  int position = 0;
  for (Operation &op : step.getBody().front()) {
    position += positions.contains(&op);
    auto await = dyn_cast<AwaitOp>(op);
    auto update = await ? await.getHandle().getDefiningOp<UpdateOp>() : UpdateOp();
    if (auto sent = update ? update.getGradient().getDefiningOp<OffloadOp>() : OffloadOp())
      ends[sent.getX()] = position;
  }
  return ends;
}

/// Builds one problem. Buffers come first, since ops list them by number, then what needs both: which buffers are
/// activations, and what can be done with them.
class Bridge {
public:
  Bridge(const Storages &storages, const planner::Profile &profile)
      : storages(storages), profile(profile), bufferOf(storages.all().size(), -1) {}

  /// Buffers before ops, which refer to them; packed forms and inversions last, as they ask which ops of the backward
  /// half read a buffer.
  planner::Problem build(ModuleOp module, func::FuncOp step, const ProblemOptions &options) {
    problem.errorBudget = options.errorBudget;
    problem.home = options.home;
    problem.base = persistentBytes(module);
    problem.alignment = slotAlignment;
    problem.link = linkTo(options.home);
    problem.codecContention = profile.codecContention.value_or(0);
    problem.packingContention = profile.packingContention.value_or(0);
    between = options.between.value_or(profile.ranks), ranks = options.ranks;
    const bool onDevice = factsOf(options.target).zerosStay;
    problem.homeContention = options.target == Target::Host ? 1 : 0; // whose threads are the device's
    problem.zerosStay = onDevice || factsOf(options.home).packs == Packs::Pieces;
    if (factsOf(options.home).packs != Packs::Nothing)
      problem.codecRates = planner::ratesOfCopies(profile, onDevice);
    for (auto [index, storage] : llvm::enumerate(storages.all()))
      if (storage.kind == Storage::Kind::Transient)
        addBuffer(index, storage);
    for (Operation *op : plannedOps(step))
      addOp(op);
    sendGradients(problem);
    for (auto [gradient, end] : endsOfUses(step, positions))
      if (const int buffer = bufferOf[storages.of(gradient)]; buffer >= 0)
        problem.buffers[buffer].usedBefore = end;
    if (between.rate > 0) // else the estimates that estimate-cost has
      setExchanges(problem, between, options.ranks);
    markActivations();
    markRoundedWeights(step);
    const PlannedBuffers buffers{storages, bufferOf, positions};
    addPackedForms(problem, step, buffers, profile, options.rate);
    addInversions(problem, step, buffers, profile);
    return std::move(problem);
  }

private:
  /// Of a storage for some part of the step. One that holds a variable from elsewhere, from a home or from the shares
  /// of all ranks, is a visitor; its home and link are the problem's, as all visitors have one.
  void addBuffer(int index, const Storage &storage) {
    bufferOf[index] = problem.buffers.size();
    planner::Buffer buffer;
    buffer.id = index;
    buffer.name = storage.name;
    buffer.bytes = storage.bytes;
    if (VariableOp variable = visitorOf(storage)) {
      buffer.visits = true;
      buffer.dropped = llvm::none_of(
          storage.values, [](Value value) { return isa_and_nonnull<ChangesVariables>(value.getDefiningOp()); });
      takeHome(variable.arena(), variable.isShare() ? linkToRanks() : linkTo(variable.arena()));
    }
    if (UpdateOp update = homeUpdateOf(storage)) {
      buffer.visits = buffer.born = true;
      auto cost = attr::get<attr::Cost>(update.getOperation());
      buffer.usedAtHome = cost ? cost.getSeconds().getValueAsDouble() : 0;
      takeHome(Space::Host, linkTo(Space::Host));
    }
    problem.buffers.push_back(buffer);
  }

  /// Of visitors.
  void takeHome(Space home, const planner::Link &link) {
    problem.visitorsHome = home;
    problem.visitorsLink = link;
  }

  /// Without rates where the profile knows no link, which checkProblem() refuses. Copies that were not measured beside
  /// compute cost it as much as those to the host.
  planner::Link linkTo(Space home) const {
    const planner::Link *known = profile.linkTo(home);
    planner::Link link = known ? *known : planner::Link();
    if (!link.contention)
      link.contention = profile.link.contention;
    return link;
  }

  /// What is gathered of all ranks comes as from the host where nothing else is known.
  planner::Link linkToRanks() const {
    if (between.rate > 0)
      return planner::gatherLink(between, ranks);
    planner::Link link = linkTo(Space::Host);
    link.d2h = link.duplex = link.h2d;
    return link;
  }

  /// Buffers of those storages that live for some part of the step, each once.
  std::vector<int> transient(ArrayRef<int> storages) const {
    std::vector<int> list;
    for (int storage : storages)
      if (bufferOf[storage] >= 0 && !llvm::is_contained(list, bufferOf[storage]))
        list.push_back(bufferOf[storage]);
    return list;
  }

  /// Positions of plans are the order of these calls.
  void addOp(Operation *op) {
    positions[op] = problem.ops.size();
    planner::Op planned;
    planned.name = nodeName(op->getLoc()) + " " + op->getName().stripDialect().str();
    planned.kind = cast<HasKernel>(op).opKind();
    planned.phase = isForward(op)                                   ? planner::Phase::Forward
                    : isa<UpdateOp, AccumulateOp, SumBatchesOp>(op) ? planner::Phase::Update
                                                                    : planner::Phase::Backward;
    if (auto stage = attr::get<attr::Stage>(op))
      planned.stage = stage.getInt();
    if (auto cost = attr::get<attr::Cost>(op)) {
      planned.seconds = cost.getSeconds().getValueAsDouble();
      planned.workspace = cost.getWorkspace();
      for (CostAttr other : cost.getAlternatives())
        planned.alternatives.push_back({other.getSeconds().getValueAsDouble(), other.getWorkspace()});
    }
    if (sched::factsOf(cast<HasKernel>(op).role()).together) {
      auto sum = dyn_cast<AllReduceOp>(op);
      for (Value made : sum ? ValueRange(sum.getSums()) : ValueRange())
        planned.summed += bytes(made.getType());
      planned.group = ranksThatMeet(op);
      planned.gathered = sum ? 0 : gatheredBytes(op) * std::max(1, planned.group); // each has as much
      planned.exchange = std::exchange(planned.seconds, 0);
    }
    planned.reads = transient(storages.reads(op));
    planned.writes = transient(storages.writes(op));
    planned.recomputable = isForward(op) && isa<Recomputable>(op);
    addVisitors(planned);
    problem.ops.push_back(std::move(planned));
  }

  /// What comes from a variable's home for this op is there when it runs, as if it had made it. When the op runs again
  /// it comes again, just for that run, and lies in the op's workspace (PlannedPlaces).
  void addVisitors(planner::Op &op) const {
    const std::vector<int> made = op.writes;
    const auto visits = [&](int buffer) { return problem.buffers[buffer].visits && !problem.buffers[buffer].born; };
    for (int buffer : op.reads)
      if (visits(buffer) && !llvm::is_contained(op.writes, buffer))
        op.writes.push_back(buffer);
    llvm::erase_if(op.reads, visits);
    if (!op.recomputable || op.writes.size() == made.size())
      return;
    planner::Rerun rerun{op.seconds, slotBytes(op.workspace), op.reads, made};
    for (const planner::Alternative &other : op.alternatives) // whichever a plan takes
      rerun.workspace = std::max(rerun.workspace, slotBytes(other.workspace));
    for (int buffer : ArrayRef(op.writes).drop_front(made.size())) {
      rerun.workspace += slotBytes(problem.buffers[buffer].bytes);
      rerun.seconds += planner::copySeconds(problem, buffer, {}, false);
    }
    op.rerun = std::move(rerun);
  }

  /// An activation is written by forward ops and read by backward ops.
  void markActivations() {
    std::vector<bool> restorable(problem.buffers.size(), true);
    for (size_t position = 0; position < problem.ops.size(); ++position) {
      const planner::Op &op = problem.ops[position];
      if (op.phase == planner::Phase::Forward) {
        for (int b : op.writes) {
          planner::Buffer &buffer = problem.buffers[b];
          if (buffer.producers.empty())
            buffer.stage = op.stage;
          buffer.producers.push_back(position);
          restorable[b] = restorable[b] && op.recomputable;
        }
        continue;
      }
      for (int b : op.reads)
        if (!problem.buffers[b].producers.empty())
          problem.buffers[b].activation = true;
    }
    for (size_t b = 0; b < problem.buffers.size(); ++b) {
      problem.buffers[b].offloadable = !problem.buffers[b].visits && problem.buffers[b].bytes >= smallestMoved;
      if (!restorable[b] || !problem.buffers[b].activation)
        problem.buffers[b].producers.clear();
    }
  }

  /// A weight rounded for the step is no feature map: rounding it again costs less than any copy.
  void markRoundedWeights(func::FuncOp step) {
    for (auto cast : step.getOps<CastOp>())
      if (int buffer = bufferOf[storages.of(cast.getY())]; buffer >= 0 && variableOf(cast.getX()))
        problem.buffers[buffer].offloadable = false;
  }

  const Storages &storages;
  const planner::Profile &profile;
  llvm::DenseMap<Operation *, int> positions; ///< in `problem.ops`
  std::vector<int> bufferOf;                  ///< storage -> buffer of the problem, -1 for what outlives the step
  planner::Interconnect between;              ///< of ranks
  int ranks = 1;
  planner::Problem problem;
};

} // namespace

planner::Problem sluice::problemOfStep(ModuleOp module, func::FuncOp step, const Storages &storages,
                                       const planner::Profile &profile, const ProblemOptions &options) {
  planner::Problem problem = Bridge(storages, profile).build(module, step, options);
  problem.base += options.oneMemory ? stagingBytes(module) : 0;
  return problem;
}
