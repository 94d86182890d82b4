// SPDX-License-Identifier: Apache-2.0
// Chooses an algorithm for every kernel, see ChooseAlgorithms.h.
#include "passes/kernels/ChooseAlgorithms.h"

#include "passes/kernels/HostTrial.h"

#include "passes/analysis/Storages.h"

#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

AlgorithmAttr KernelAlgorithm::attribute(MLIRContext *context) const {
  return AlgorithmAttr::get(context, StringAttr::get(context, name), parts, granted);
}

// Of two that are equal in both the earlier one stays.
std::vector<int> AlgorithmChoice::unbeaten() const {
  std::vector<int> kept = {chosen};
  for (int i = 0; i < static_cast<int>(offered.size()); ++i) {
    const KernelAlgorithm &a = offered[i];
    bool beaten = i == chosen;
    for (int j = 0; j < static_cast<int>(offered.size()); ++j) {
      const KernelAlgorithm &other = offered[j];
      const bool better = other.slowness < a.slowness || other.workspace < a.workspace || j < i;
      beaten |= j != i && other.slowness <= a.slowness && other.workspace <= a.workspace && better;
    }
    if (!beaten)
      kept.push_back(i);
  }
  return kept;
}

/// Sets `resident` of one function's choices. Activations count only where they are touched: plans can take them away
/// in between; gradients, from their first op to their last.
static void noteResident(func::FuncOp function, std::vector<AlgorithmChoice> &choices) {
  struct Life {
    int first = -1, last = -1;
    bool activation = false;
  };
  const Storages storages(function);
  std::vector<Life> lives(storages.all().size());
  std::vector<llvm::SmallSetVector<int, 8>> touched(choices.size());
  for (auto [position, choice] : llvm::enumerate(choices)) {
    for (int s : storages.reads(choice.op))
      touched[position].insert(s);
    for (int s : storages.writes(choice.op)) {
      touched[position].insert(s);
      lives[s].activation |= isForward(choice.op);
    }
    // What outlives the step is there in any case and makes no algorithm dearer than another.
    touched[position].remove_if([&](int s) { return storages[s].kind != Storage::Kind::Transient; });
    for (int s : touched[position])
      lives[s] = {lives[s].first < 0 ? static_cast<int>(position) : lives[s].first, static_cast<int>(position),
                  lives[s].activation};
  }
  // Live gradients at the op at hand: counted from their first op on, let go after their last.
  int64_t gradients = 0;
  for (auto [position, choice] : llvm::enumerate(choices)) {
    int64_t ended = 0;
    choice.resident = 0;
    for (int s : touched[position]) {
      const int64_t size = slotBytes(storages[s].bytes);
      if (lives[s].activation) {
        choice.resident += size;
        continue;
      }
      gradients += lives[s].first == static_cast<int>(position) ? size : 0;
      ended += lives[s].last == static_cast<int>(position) ? size : 0;
    }
    choice.resident += gradients;
    gradients -= ended;
  }
}

FailureOr<std::vector<AlgorithmChoice>>
sluice::choicesOf(func::FuncOp function,
                  llvm::function_ref<FailureOr<std::vector<KernelAlgorithm>>(Operation *)> offers) {
  std::vector<AlgorithmChoice> choices;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (isFree(&op))
      continue;
    FailureOr<std::vector<KernelAlgorithm>> offered = offers(&op);
    if (failed(offered))
      return failure();
    choices.push_back({&op, std::move(*offered)});
  }
  noteResident(function, choices);
  return choices;
}

namespace {

/// Within this of the largest footprint a workspace counts as free.
constexpr double slack = 1.03;
/// "Twice as slow".
constexpr double tooSlow = 2;

/// The least workspace among those that are less than twice as slow as the fastest.
int64_t frugal(const AlgorithmChoice &choice) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const KernelAlgorithm &a : choice.offered)
    if (a.slowness < tooSlow * choice.offered.front().slowness)
      least = std::min(least, a.workspace);
  return least;
}

/// Limits of every op that follow from the step.
std::vector<int64_t> derivedLimits(const std::vector<AlgorithmChoice> &choices) {
  int64_t activation = 0, footprint = 0;
  for (const AlgorithmChoice &choice : choices) {
    footprint = std::max(footprint, choice.resident + frugal(choice));
    if (isForward(choice.op))
      for (Value result : choice.op->getResults())
        activation = std::max(activation, bytes(result.getType()));
  }
  std::vector<int64_t> limits;
  for (const AlgorithmChoice &choice : choices) {
    const auto room = static_cast<int64_t>(slack * static_cast<double>(footprint)) - choice.resident;
    limits.push_back(std::max(frugal(choice), std::min(activation, room)));
  }
  return limits;
}

/// The fastest that fits; -1: none.
int fastest(const std::vector<KernelAlgorithm> &offered, int64_t limit) {
  for (int i = 0; i < static_cast<int>(offered.size()); ++i)
    if (offered[i].workspace <= limit)
      return i;
  return -1;
}

/// Sets `chosen` of all, without trying any. Offers are fastest first, so that the first that fits is the one.
LogicalResult choose(std::vector<AlgorithmChoice> &choices, int64_t limit) {
  const std::vector<int64_t> derived = limit ? std::vector<int64_t>(choices.size(), limit) : derivedLimits(choices);
  for (size_t i = 0; i < choices.size(); ++i) {
    AlgorithmChoice &choice = choices[i];
    choice.chosen = fastest(choice.offered, derived[i]);
    if (choice.chosen >= 0)
      continue;
    int64_t least = choice.offered.front().workspace;
    for (const KernelAlgorithm &a : choice.offered)
      least = std::min(least, a.workspace);
    auto diagnostic = choice.op->emitError()
                      << "node '" << nodeName(choice.op->getLoc()) << "' (" << choice.op->getName().stripDialect()
                      << ") needs a workspace of " << least << " bytes at least, the limit is " << derived[i]
                      << "; raise --workspace-limit";
    if (const int64_t most = choice.offered.front().workspace; most > least)
      diagnostic.attachNote() << "the fastest of its kernels needs " << most << " bytes";
    return diagnostic;
  }
  return success();
}

} // namespace

/// Choices are tried out on this machine; what does not work is left out, and all are chosen again, since limits follow
/// from all of them.
LogicalResult sluice::chooseAlgorithms(std::vector<AlgorithmChoice> &choices, int64_t limit, bool alternatives) {
  for (;;) {
    if (failed(choose(choices, limit)))
      return failure();
    if (everythingWorks(choices, alternatives)) // else what failed is offered no more
      return success();
  }
}
