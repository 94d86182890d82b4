// SPDX-License-Identifier: Apache-2.0
// Looks at every op that can be undone and walks from its operands back to what the backward half finds on the device.
#include "passes/analysis/InvertedStorages.h"

#include "passes/analysis/Masks.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// More ops than this are no way to make an addend again.
constexpr size_t mostReruns = 8;
/// What train.check_cancellation writes.
constexpr int64_t checkBytes = cancellationParts * 2 * sizeof(float);

/// One walk over the forward ops in program order. What was found for a storage may be replaced by what a later op
/// offers for it. `readBySums` and `guardedSources` are storages that an inversion reads already: errors must not add
/// up through both kinds, see the header.
class Finder {
public:
  /// `changed`: where the update of a variable stands, after which an inversion that reads it would give something
  /// else.
  Finder(func::FuncOp step, const Storages &storages)
      : storages(storages), ops(plannedOps(step)), contents(forwardContents(step, storages)),
        readLater(storages.all().size(), false) {
    for (auto [position, op] : llvm::enumerate(ops)) {
      if (isForward(op))
        continue;
      for (int s : storages.reads(op))
        readLater[s] = true;
      if (auto update = dyn_cast<UpdateOp>(op))
        changed.try_emplace(variableOf(update.getParameter()).getValue(), static_cast<int>(position));
    }
  }

  llvm::MapVector<int, StorageInversion> run() {
    for (Operation *op : ops)
      if (auto invertible = dyn_cast<Invertible>(op); invertible && isForward(op))
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          if (invertible.isInvertible(i) && comesBack(op, i))
            invertible.savedType(i) ? addGuarded(invertible, i) : addSum(invertible, i);
    return std::move(found);
  }

private:
  /// Whether operand and result are what the forward half leaves in their storages, and the backward half reads the
  /// operand.
  bool comesBack(Operation *op, unsigned operand) const {
    Value x = op->getOperand(operand), z = op->getResult(0);
    int s = storages.of(x), source = storages.of(z);
    return s != source && contents[s] == x && contents[source] == z && !viewSource(x) && readLater[s] &&
           storages[s].kind == Storage::Kind::Transient && storages[source].kind == Storage::Kind::Transient;
  }

  /// The first position that changes a parameter among the values that `op` reads.
  int changesAt(Operation *op) const {
    int first = ops.size();
    for (Value operand : op->getOperands())
      if (auto read = viewedValue(operand).getDefiningOp<ReadOp>())
        if (auto at = changed.find(read.getVariable()); at != changed.end())
          first = std::min(first, at->second);
    return first;
  }

  /// The op undoes BatchNorm and a leaky ReLU, with channels that it saves. A storage has one such inversion, and a
  /// content is the source of one at most.
  void addGuarded(Invertible op, unsigned operand) {
    int s = storages.of(op->getOperand(operand)), source = storages.of(op->getResult(0));
    if (found.contains(s) || readBySums.contains(s) || guardedSources.contains(s) || found.contains(source) ||
        !guardedSources.insert(source).second)
      return;
    StorageInversion inversion{op, operand, {}, {source}, changesAt(op)};
    found[s] = inversion;
  }

  /// The op is a sum that the operand is an addend of. Its content is neither read nor given back where a leaky ReLU is
  /// undone, and none of its sources is given back so; from other sums it may be undone in a chain.
  void addSum(Invertible op, unsigned operand) {
    int s = storages.of(op->getOperand(operand)), source = storages.of(op->getResult(0));
    if (guardedSources.contains(s) || (found.contains(s) && found[s].op.savedType(found[s].operand)))
      return;
    StorageInversion inversion{op, operand, {}, {source}, changesAt(op)};
    for (auto [i, other] : llvm::enumerate(op->getOperands()))
      if (i != operand && !need(other, s, inversion))
        return;
    // What is rebuilt from is no longer rebuilt from a leaky ReLU.
    if (llvm::any_of(inversion.sources,
                     [&](int from) { return found.contains(from) && found[from].op.savedType(found[from].operand); }))
      return;
    readBySums.insert(inversion.sources.begin(), inversion.sources.end());
    measure(inversion);
    found[s] = inversion; // of several sums that read it the last is the nearest
  }

  /// Makes `value` available: a source, or ops that run again for it. False when that takes the content itself or an op
  /// that cannot run again.
  bool need(Value value, int content, StorageInversion &inversion) {
    Value root = viewedValue(value);
    int s = storages.of(root);
    if (s == content)
      return false;
    Operation *maker = root.getDefiningOp();
    if (storages[s].kind != Storage::Kind::Transient || llvm::is_contained(inversion.reruns, maker))
      return true;
    bool stays = contents[s] == root;
    if (!(stays && readLater[s]) && runAgain(maker, content, inversion))
      return true;
    if (stays && !llvm::is_contained(inversion.sources, s))
      inversion.sources.push_back(s);
    return stays;
  }

  /// On a copy of the inversion: an op whose operands cannot all be had must leave none of them behind.
  bool runAgain(Operation *maker, int content, StorageInversion &inversion) {
    if (!maker || !isForward(maker) || !isa<Recomputable>(maker))
      return false;
    StorageInversion attempt = inversion;
    for (Value operand : maker->getOperands())
      if (!need(operand, content, attempt))
        return false;
    attempt.reruns.push_back(maker);
    attempt.latest = std::min(attempt.latest, changesAt(maker));
    if (attempt.reruns.size() > mostReruns)
      return false;
    inversion = attempt;
    return true;
  }

  static int64_t scratchOf(Operation *op) {
    auto cost = attr::get<attr::Cost>(op);
    return cost ? cost.getWorkspace() : 0;
  }

  /// What the ops that run again make lives until its last reader among them; the rebuilt content takes the place of
  /// the last one.
  void measure(StorageInversion &inversion) const {
    const size_t count = inversion.reruns.size(); // the undoing comes after them
    Operation *last = count ? inversion.reruns.back() : nullptr;
    Value x = inversion.op->getOperand(inversion.operand);
    inversion.inPlace = last && last->getNumResults() == 1 && last->getResult(0).getType() == x.getType() &&
                        llvm::count(inversion.op->getOperands(), last->getResult(0)) == 1;
    auto lastReader = [&](Value value, size_t made) {
      for (size_t k = count; k > made; --k)
        if (llvm::any_of((k == count ? inversion.op.getOperation() : inversion.reruns[k])->getOperands(),
                         [&](Value operand) { return viewedValue(operand) == value; }))
          return k;
      return made;
    };
    const int64_t content = slotBytes(bytes(x.getType()));
    std::vector<int64_t> live(count + 1, -content); // the content's own bytes are counted from the start
    live.back() += (inversion.inPlace ? 0 : content) + checkBytes;
    for (auto [k, op] : llvm::enumerate(inversion.reruns)) {
      live[k] += slotBytes(scratchOf(op));
      for (Value result : op->getResults())
        for (size_t at = k; at <= lastReader(result, k); ++at)
          live[at] += slotBytes(bytes(result.getType()));
    }
    for (int64_t most : live)
      inversion.workspace = std::max(inversion.workspace, most);
  }

  const Storages &storages;
  const SmallVector<Operation *> ops;
  const SmallVector<Value> contents;
  std::vector<bool> readLater;  ///< by storage
  llvm::StringMap<int> changed; ///< parameter -> first op that updates it
  llvm::DenseSet<int> guardedSources, readBySums;
  llvm::MapVector<int, StorageInversion> found;
};

} // namespace

llvm::MapVector<int, StorageInversion> sluice::invertedStorages(func::FuncOp step, const Storages &storages) {
  return Finder(step, storages).run();
}
