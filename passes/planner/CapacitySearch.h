// SPDX-License-Identifier: Apache-2.0
// One depth-first search for a packing within a capacity, under one order of the items. PackSearch.cpp chooses
// capacities, orders and limits.
#pragma once

#include "passes/planner/PackInstance.h"

#include <algorithm>
#include <numeric>

namespace sluice::planner {

/// One search for a packing within `capacity`, under one of the static orders.
class CapacitySearch {
public:
  enum class Outcome { Found, Exhausted, OutOfNodes };

  /// `orders` counts the orders that any search of the same capacity has sorted; a tie broken by one of them means
  /// nothing in another.
  CapacitySearch(const PackInstance &instance, int heuristic, Bytes capacity, int64_t nodeLimit, int64_t workLimit,
                 FailedStates &failed, int64_t &orders)
      : in(instance), heuristic(heuristic), capacity(capacity), nodeLimit(nodeLimit), workLimit(workLimit),
        failed(failed), orders(orders), rank(in.items.size()), offset(in.items.size(), -1), lowest(in.items.size(), 0),
        unplacedNeighbours(in.items.size()), floor(in.sections.size(), 0), rest(in.totals),
        crossing(in.sections.size(), 0), witness(in.sections.size(), -1) {
    for (size_t i = 0; i < in.items.size(); ++i) {
      unplacedNeighbours[i] = in.items[i].neighbours.size();
      for (int s = in.items[i].first; s < in.items[i].last; ++s)
        ++crossing[s];
    }
    for (size_t s = 0; s < in.sections.size(); ++s)
      witness[s] = in.sections[s].empty() ? -1 : in.sections[s][0];
  }

  Outcome run() {
    if (std::any_of(rest.begin(), rest.end(), [&](Bytes total) { return total > capacity; }))
      return Outcome::Exhausted;
    std::vector<int> all(in.items.size());
    std::iota(all.begin(), all.end(), 0);
    if (solveParts(all))
      return Outcome::Found;
    return nodes >= nodeLimit || work > workLimit ? Outcome::OutOfNodes : Outcome::Exhausted;
  }

  int64_t nodes = 0, work = 0; ///< work: items that were looked at
  const std::vector<Bytes> &offsets() const { return offset; }

private:
  using Progress = FailedStates::Progress;
  /// A free item and the lowest place that it could take.
  struct Candidate {
    Bytes offset;
    int item;
  };
  /// A change of `lowest` of an item, or of floor and witness of a section: what unwind() puts back.
  struct Undo {
    enum Kind { Lowest, Floor } kind;
    int index, oldWitness;
    Bytes old;
  };

  bool solveParts(const std::vector<int> &unplaced);
  void sortAnew(std::vector<int> &part);
  bool solve(const std::vector<int> &unplaced, const Progress &at);
  bool fits(const Candidate &candidate, const std::vector<int> &unplaced, int64_t order);
  bool descend(const std::vector<int> &unplaced, int placed, int64_t order);
  std::vector<Candidate> candidates(const std::vector<int> &unplaced, const Progress &at) const;
  FailedStates::Key keyOf(const std::vector<int> &unplaced) const;
  bool splits(int item) const;
  bool place(int item, Bytes at);
  bool raise(int item, Bytes to);
  bool refresh(int section);
  void unwind(size_t placedBefore, size_t mark);
  void lift(int item);

  const PackInstance &in;
  const int heuristic;
  const Bytes capacity;
  const int64_t nodeLimit, workLimit;
  FailedStates &failed;
  int64_t &orders;
  std::vector<int> rank; ///< in the order of the part that an item belongs to
  std::vector<Bytes> offset, lowest;
  std::vector<int> unplacedNeighbours;
  std::vector<Bytes> floor, rest; ///< of a section: lowest offset of an unplaced item, total size of the unplaced ones
  std::vector<int> crossing;      ///< unplaced items that live in a section and in the next one
  std::vector<int> witness;       ///< unplaced item that attains the floor
  std::vector<int> placedItems;   ///< in order of placement
  std::vector<Undo> log;
};

} // namespace sluice::planner
