// SPDX-License-Identifier: Apache-2.0
// apply-plan: one walk over the planned ops of each function. Before each op, in this order: awaits of copies and
// codecs whose bytes may be reused from here on, prefetches and decodings that were issued after the op before, what
// inversions rebuild, masks that stand for what they were made of from here on, recomputed clones. Each op then reads
// the newest version of what it read, and has the plan's offsets of what it makes. After it: copies out and packing.
// Until here the plan is numbers beside a program that keeps everything. From here on ops in SSA say all of it, so that
// schedule-streams knows neither plans nor actions, and verify-schedule has something to hold the program against (V8).
#include "passes/Passes.h"
#include "passes/analysis/InvertedStorages.h"
#include "passes/analysis/Masks.h"
#include "passes/plan/NewestValues.h"
#include "passes/plan/PlacedAbsences.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/plan/PlannedPlaces.h"
#include "passes/plan/ProblemOfStep.h"
#include "passes/plan/Rebuild.h"
#include "passes/plan/Visitors.h"
#include "passes/planner/Words.h"

#include "ir/RuntimeTypes.h"

namespace sluice {
#define GEN_PASS_DEF_APPLYPLAN
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;
using planner::Action;

namespace {

/// Kernels compute as the plan says, before anything is cloned.
LogicalResult takeAlternatives(func::FuncOp step, const planner::Plan &plan, ArrayRef<Operation *> ops) {
  if (plan.alternatives.empty())
    return success();
  if (plan.alternatives.size() != ops.size())
    return step.emitError() << "the plan chooses kernels for " << plan.alternatives.size() << " ops of " << ops.size();
  for (auto [op, chosen] : llvm::zip(ops, plan.alternatives)) {
    auto cost = attr::get<attr::Cost>(op);
    ArrayRef<CostAttr> list = cost ? cost.getAlternatives() : ArrayRef<CostAttr>();
    if (list.empty() && chosen == 0)
      continue;
    if (chosen >= static_cast<int>(list.size()))
      return op->emitError() << "the plan chooses alternative " << chosen << " of " << list.size();
    attr::set<attr::Algorithm>(op, list[chosen].getAlgorithm());
    attr::set<attr::Cost>(op, list[chosen].inUse());
  }
  return success();
}

/// Only the regions that maskIsPositive() looked at may read a mask.
LogicalResult checkMaskReaders(func::FuncOp step, const Storages &storages) {
  for (auto encode : step.getOps<EncodeOp>())
    for (Operation *reader : encode.getPacked().getUsers())
      if (*parseForm(encode.getCodec()) == Codec::Mask && (!isa<FusedOp>(reader) || isForward(reader)))
        return reader->emitError() << "'" << nodeName(reader->getLoc()) << "' reads the values of '"
                                   << storages[storages.of(encode.getX())].name
                                   << "', of which the plan keeps a mask only";
  return success();
}

RankedTensorType maskTypeOf(Value content) {
  return packedType(cast<RankedTensorType>(content.getType()), Codec::Mask);
}

/// The walk over one function. Planned ops never move, others are put between them, so that positions of the plan stay
/// those of `ops` throughout. What a clone reads is asked of NewestValues at its place, since an operand may have left
/// and come back since the op first ran.
class Rewriter {
public:
  Rewriter(func::FuncOp step, planner::Plan plan, const PlannedPlaces &places, StringAttr home,
           const Storages &storages)
      : step(step), plan(std::move(plan)), places(places), home(home), storages(storages), ops(plannedOps(step)),
        contents(forwardContents(step, storages)), handles(storages.all().size()),
        inverters(invertedStorages(step, storages)), placed(step, this->plan, storages, ops, contents, inverters),
        visitors(storages, this->plan, places) {}

  int offloads = 0, packed = 0, recomputed = 0, inverted = 0;

  LogicalResult run() {
    if (failed(placed.place()) || failed(takeAlternatives(step, plan, ops)))
      return failure();
    for (int position = 0; position < static_cast<int>(ops.size()); ++position) {
      Operation *op = ops[position];
      OpBuilder before(op);
      for (int s : placed.releases.lookup(position))
        free(before, op->getLoc(), s);
      for (int s : placed.returns.lookup(position - 1))
        bringBack(before, s);
      for (int s : placed.rebuilds.lookup(position)) // from what is back by then
        newest.replace(viewedValue(content.lookup(s)), rebuild(before, s));
      for (int s : placed.masks.lookup(position))
        newest.replace(viewedValue(contents[s]),
                       PackedMaskOp::create(before, contents[s].getLoc(), maskTypeOf(contents[s]), handles[s]));
      recomputeUpTo(before, position);
      visitors.bringForOp(before, op, steps);
      newest.read(before, op);
      noteWrites(op);
      noteRun(op, op);
      OpBuilder after(op->getBlock(), std::next(op->getIterator()));
      for (int s : placed.departures.lookup(position))
        sendAway(after, s);
    }
    OpBuilder atEnd(step.getBody().front().getTerminator());
    for (int s : placed.releases.lookup(static_cast<int>(ops.size())))
      free(atEnd, step.getLoc(), s);
    return checkMaskReaders(step, storages);
  }

private:
  void noteWrites(Operation *op) {
    for (Value result : op->getResults())
      content[storages.of(result)] = result;
  }

  /// The op, or one that runs again, is the next step. `before`: bytes in front of its workspace.
  void noteRun(Operation *original, Operation *op, int64_t before = 0) {
    SmallVector<StringRef> names;
    for (int s : storages.writes(original))
      names.push_back(storages[s].name);
    places.note(op, names, PlaceForm::Raw, steps++, before);
  }

  /// What lies where the content of a storage is once more, for the next step.
  void noteReturn(Operation *op, int s) { places.note(op, {storages[s].name}, PlaceForm::Raw, steps); }

  /// What holds the content from the step before on.
  void notePacked(Value packed, int s) {
    places.note(packed.getDefiningOp(), {storages[s].name}, PlaceForm::Packed, steps - 1);
  }

  /// Runs the segments again that the plan wants before this position.
  void recomputeUpTo(OpBuilder &before, int position) {
    for (; nextRecompute < plan.recomputes.size() && plan.recomputes[nextRecompute].before == position; ++nextRecompute)
      for (int again : plan.recomputes[nextRecompute].ops)
        recompute(before, ops[again]);
  }

  void offload(OpBuilder &b, int s, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    // Pool indices and statistics are copied as they are.
    const Codec wanted = plan.decisions[s].codec;
    auto codec = packedType(type, wanted) ? b.getStringAttr(codecName(wanted)) : StringAttr();
    handles[s] = OffloadOp::create(b, value.getLoc(), HostHandleType::get(b.getContext(), type), value, codec, home,
                                   FlatSymbolRefAttr());
    ++offloads;
  }

  /// Offload, compress and encode, where the content is complete.
  void sendAway(OpBuilder &b, int s) {
    const planner::Decision &d = plan.decisions[s];
    if (visitors.has(s))
      return visitors.depart(b, s);
    Value value = newest.of(b, content.lookup(s));
    switch (d.action) {
    case Action::Offload:
      return offload(b, s, value);
    case Action::Compress:
    case Action::Encode:
      return encode(b, s, value);
    case Action::Invert:
      return save(b, s);
    case Action::Keep:
    case Action::Recompute:
      break;
    }
    llvm_unreachable("it stays");
  }

  void encode(OpBuilder &b, int s, Value value) {
    const Codec codec = plan.decisions[s].codec;
    const bool positive = codec.kind == Codec::Mask && *maskIsPositive(contents[s], storages);
    auto type = cast<RankedTensorType>(value.getType());
    handles[s] = EncodeOp::create(b, value.getLoc(), packedType(type, codec), value, codecName(codec), positive);
    notePacked(handles[s], s);
    ++packed;
  }

  /// What rebuilding it needs, if anything.
  void save(OpBuilder &b, int s) {
    StorageInversion inversion = inverters.lookup(s);
    if (inversion.op.savedType(inversion.operand))
      notePacked(handles[s] = inversion.op.buildSaved(b, inversion.operand, fromHalves(inversion)), s);
    ++inverted;
  }

  /// Where other storages may have the bytes.
  void free(OpBuilder &b, Location loc, int s) {
    if (visitors.has(s))
      return visitors.release(b, s);
    switch (plan.decisions[s].action) {
    case Action::Offload:
    case Action::Compress:
      AwaitOp::create(b, loc, handles[s]);
      return;
    case Action::Encode:
      newest.replace(viewedValue(contents[s]), handles[s]);
      return;
    case Action::Invert: // nothing runs beside compute for it
      return;
    case Action::Keep:
    case Action::Recompute:
      break;
    }
    llvm_unreachable("it stays");
  }

  void bringBack(OpBuilder &b, int s) {
    if (visitors.has(s))
      return visitors.arrive(b, s, steps);
    const planner::Decision &d = plan.decisions[s];
    Value original = viewedValue(content.lookup(s)), now;
    const Location loc = original.getLoc();
    switch (d.action) {
    case Action::Offload:
      now = PrefetchOp::create(b, loc, cast<HostHandleType>(handles[s].getType()).getTensor(), handles[s]);
      break;
    case Action::Compress:
      now = DecodeOp::create(b, loc, original.getType(), handles[s], codecName(d.codec));
      break;
    case Action::Encode:
    case Action::Invert:
    case Action::Keep:
    case Action::Recompute:
      llvm_unreachable("no copy and no codec brings it back");
    }
    noteReturn(now.getDefiningOp(), s);
    newest.replace(original, now);
  }

  Value rebuild(OpBuilder &b, int s) {
    const StorageInversion &inversion = inverters.find(s)->second;
    const Rebuilt rebuilt = sluice::rebuild(b, inversion, handles[s], fromHalves(inversion), newest);
    noteReturn(rebuilt.first.getDefiningOp(), s);
    return rebuilt.result;
  }

  /// Whether the result of the op that is undone comes back from half precision.
  bool fromHalves(const StorageInversion &inversion) const {
    return plan.decisions[inversion.sources.front()].codec.kind == Codec::Fp16;
  }

  void recompute(OpBuilder &b, Operation *op) {
    Operation *clone = b.clone(*op);
    const int64_t fetched = visitors.readAgain(clone, newest, steps);
    attr::set<attr::Recompute>(clone, b.getUnitAttr());
    for (auto [first, again] : llvm::zip(op->getResults(), clone->getResults()))
      newest.set(first, again);
    noteRun(op, clone, fetched);
    ++recomputed;
  }

  func::FuncOp step;
  planner::Plan plan;
  const PlannedPlaces &places;
  const StringAttr home; ///< of what is offloaded
  const Storages &storages;
  SmallVector<Operation *> ops;
  SmallVector<Value> contents;                      ///< by storage: what the forward half leaves in it
  std::vector<Value> handles;                       ///< by storage
  llvm::MapVector<int, StorageInversion> inverters; ///< by storage
  PlacedAbsences placed;
  const Visitors visitors;
  NewestValues newest;
  llvm::DenseMap<int, Value> content; ///< storage -> value written last, as the original names it
  size_t nextRecompute = 0;           ///< of the plan's segments, in order
  int steps = 0;                      ///< that the plan counts, so far
};

StringRef nameOf(const Storage &storage) { return storage.name; }

struct ApplyPlan : sluice::impl::ApplyPlanBase<ApplyPlan> {
  void runOnOperation() override {
    if (!planOfStep(getOperation())) {
      getOperation().emitError() << "needs @step with a plan; run plan-memory first";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (PlanAttr plan = attr::get<attr::Plan>(function); plan && failed(apply(function, plan)))
        return signalPassFailure();
  }

private:
  LogicalResult apply(func::FuncOp step, PlanAttr attribute) {
    if (failed(checkTensors(step)))
      return failure();
    Storages storages(step);
    Result<planner::Plan> plan = planOfAttribute(attribute, llvm::map_to_vector(storages.all(), nameOf));
    if (!plan)
      return step.emitError() << plan.error();
    const PlannedPlaces places(attribute);
    Rewriter rewriter(step, std::move(*plan), places, attribute.getHome(), storages);
    if (failed(rewriter.run()))
      return failure();
    offloads += rewriter.offloads;
    packed += rewriter.packed;
    recomputed += rewriter.recomputed;
    inverted += rewriter.inverted;
    // Views whose readers all moved to newer versions.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
      if (op.getNumResults() == 1 && viewSource(op.getResult(0)) && op.use_empty())
        op.erase();
    return success();
  }
};

} // namespace
