// SPDX-License-Identifier: Apache-2.0
// A packing problem as its exact search sees it: time cut into sections, which items meet, and which searches failed.
#pragma once

#include "passes/planner/Pack.h"

#include <cstdint>
#include <vector>

namespace sluice::planner {

/// Items by section, an interval between neighbouring starts and ends. Immutable and shared by all searches.
struct PackInstance {
  /// Items must pass checkItems(); they are copied.
  explicit PackInstance(const std::vector<PackItem> &items);

  struct Item {
    int first, last; ///< sections, both included
    double width;    ///< of the lifetime, in the caller's units of time
    Bytes size, alignment;
    Bytes fixed;                 ///< -1: free
    std::vector<int> neighbours; ///< items whose lifetimes meet this one's
  };
  std::vector<Item> items;
  std::vector<std::vector<int>> sections; ///< items of each section
  std::vector<Bytes> totals;              ///< bytes of each section
};

/// Searches that failed, by what decides them: which items are left and how low each may go. How the items below them
/// are stacked does not matter, so many branches meet in one state. A table of fixed size, later entries replace
/// earlier ones; states are told apart by 128 bits of hash.
class FailedStates {
public:
  /// Room for about `states`, at most a million.
  explicit FailedStates(int64_t states);

  struct Key {
    uint64_t low = 0, high = 0;
    void add(int item, Bytes lowest);
  };
  /// How far the canonical order of placement had come: nothing may be placed below `offset`, nor at it by an item
  /// whose rank in order `order` is `rank` or less (-1: any item may).
  struct Progress {
    Bytes offset = 0;
    int64_t order = 0;
    int rank = -1;
  };
  void add(const Key &key, const Progress &at) { table[key.low & mask] = {key, at, true}; }
  /// True when the state failed with at least as much freedom.
  bool contains(const Key &key, const Progress &at) const;

private:
  struct Entry {
    Key key;
    Progress at;
    bool used = false;
  };
  std::vector<Entry> table;
  uint64_t mask;
};

} // namespace sluice::planner
