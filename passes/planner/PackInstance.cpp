// SPDX-License-Identifier: Apache-2.0
// Sweeps lifetimes into sections, and keeps the table of failed states.
#include "passes/planner/PackInstance.h"

#include <algorithm>

namespace sluice::planner {

// Between two neighbouring times at which something begins or ends the same items live: a section. Neighbours are found
// pair by pair, which bounds the items for which the search is worth its space.
PackInstance::PackInstance(const std::vector<PackItem> &from) {
  std::vector<int64_t> times;
  for (const PackItem &item : from) {
    times.push_back(item.lower);
    times.push_back(item.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto index = [&](int64_t t) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  sections.resize(times.empty() ? 0 : times.size() - 1);
  totals.assign(sections.size(), 0);
  for (int i = 0; i < static_cast<int>(from.size()); ++i) {
    const PackItem &item = from[i];
    items.push_back({index(item.lower),
                     index(item.upper) - 1,
                     item.width(),
                     item.size,
                     item.alignment,
                     item.offset.value_or(-1),
                     {}});
    for (int s = items[i].first; s <= items[i].last; ++s) {
      sections[s].push_back(i);
      totals[s] += item.size;
    }
  }
  for (int i = 0; i < static_cast<int>(items.size()); ++i)
    for (int j = 0; j < static_cast<int>(items.size()); ++j)
      if (i != j && items[i].first <= items[j].last && items[j].first <= items[i].last)
        items[i].neighbours.push_back(j);
}

/// Finalizer of splitmix64: every input bit reaches every output bit.
static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

FailedStates::FailedStates(int64_t states) {
  size_t size = 1024;
  while (size < (size_t(1) << 20) && static_cast<int64_t>(size) < states)
    size *= 2;
  table.resize(size);
  mask = size - 1;
}

void FailedStates::Key::add(int item, Bytes lowest) {
  const uint64_t one = mixed(mixed(item + 1) + static_cast<uint64_t>(lowest));
  low += one; // sums, so that the order of the items does not matter
  high += mixed(one);
}

bool FailedStates::contains(const Key &key, const Progress &at) const {
  const Entry &e = table[key.low & mask];
  if (!e.used || e.key.low != key.low || e.key.high != key.high)
    return false;
  const bool freer = e.at.rank < 0 || (e.at.order == at.order && e.at.rank <= at.rank);
  return e.at.offset < at.offset || (e.at.offset == at.offset && freer);
}

} // namespace sluice::planner
