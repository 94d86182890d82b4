// SPDX-License-Identifier: Apache-2.0
// Which capacities a packing is searched for: first the one that is good enough, then half of what remains between what
// is known to fail and the best packing so far; with MiniMalloc's three orders in turn and doubling node limits.
#include "passes/planner/PackSearch.h"

#include "passes/planner/CapacitySearch.h"
#include "passes/planner/PackInstance.h"

#include <algorithm>

namespace sluice::planner {

namespace {

/// Asks for `capacity` with at most `limit` nodes: the orders in turn, each with as many nodes as the others, twice as
/// many every round.
CapacitySearch::Outcome searchCapacity(const PackInstance &in, Bytes capacity, int64_t limit, int64_t workLimit,
                                       Packing &best) {
  int64_t used = 0, orders = 0;
  for (int64_t length = 4 * in.items.size(); used < limit && best.work < workLimit; length *= 2) {
    FailedStates failed(3 * length);
    for (int heuristic = 0; heuristic < 3 && used < limit && best.work < workLimit; ++heuristic) {
      CapacitySearch search(in, heuristic, capacity, std::min(length, limit - used), workLimit - best.work, failed,
                            orders);
      const CapacitySearch::Outcome outcome = search.run();
      used += std::max<int64_t>(search.nodes, 1);
      best.nodes += search.nodes;
      best.work += search.work;
      if (outcome == CapacitySearch::Outcome::Found) {
        best.offsets = search.offsets();
        best.height = 0;
        for (size_t i = 0; i < in.items.size(); ++i)
          best.height = std::max(best.height, best.offsets[i] + in.items[i].size);
        best.method = "search";
      }
      if (outcome != CapacitySearch::Outcome::OutOfNodes)
        return outcome;
    }
  }
  return CapacitySearch::Outcome::OutOfNodes;
}

/// How many of the nodes that are left an ask may take.
int64_t shareOf(int64_t left, bool targetAsked, bool targetEnough) {
  // With a height that is good enough nothing else is worth a node.
  return targetAsked && targetEnough ? left : std::max<int64_t>(1000, left / (targetAsked ? 2 : 4));
}

} // namespace

// A capacity that fails exhaustively right above the ones that are known to fail moves the proof up; one that runs out
// of nodes proves nothing, and the next ask lies higher.
void searchPacking(const std::vector<PackItem> &items, const PackOptions &options, Packing &best) {
  const PackInstance in(items);
  const Bytes load = packLoad(items), target = std::max(load, options.goodEnough);
  Bytes refuted = load - 1; // largest capacity known not to suffice
  // The target first: on real programs it is usually reachable. Then halve what remains.
  Bytes ask = target;
  while (best.height > target && ask < best.height && best.nodes < options.nodeLimit && best.work < options.workLimit) {
    const int64_t share = shareOf(options.nodeLimit - best.nodes, ask == target, options.goodEnough >= load);
    const CapacitySearch::Outcome outcome = searchCapacity(in, ask, share, options.workLimit, best);
    if (outcome == CapacitySearch::Outcome::Exhausted && ask == refuted + 1)
      refuted = ask;
    const Bytes low = outcome == CapacitySearch::Outcome::Found ? target : ask;
    const Bytes next = low + (best.height - low) / 2;
    if (next == ask || next >= best.height)
      break;
    ask = next;
  }
  best.optimal = best.height == load || best.height == refuted + 1;
}

} // namespace sluice::planner
