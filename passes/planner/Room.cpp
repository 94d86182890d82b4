// SPDX-License-Identifier: Apache-2.0
// Live bytes against a limit, see Room.h.
#include "passes/planner/Room.h"

#include <algorithm>

namespace sluice::planner {

Room::Room(const Problem &problem, Bytes memory, const Plan &plan)
    : memory(memory), base(problem.base), live(liveByPosition(problem, expand(problem, plan))) {
  over = std::count_if(live.begin(), live.end(), [&](Bytes b) { return b > memory; });
}

Bytes Room::peak() const { return live.empty() ? base : *std::max_element(live.begin(), live.end()); }

/// Whether it holds of the bytes at some position of the gaps.
template <typename Holds> bool Room::any(const std::vector<Gap> &gaps, Holds holds) const {
  return std::any_of(gaps.begin(), gaps.end(), [&](Gap gap) {
    return std::any_of(live.begin() + gap.first, live.begin() + gap.last + 1, holds);
  });
}

bool Room::relieves(const std::vector<Gap> &gaps) const {
  return any(gaps, [&](Bytes b) { return b > memory; });
}

bool Room::giveBack(const std::vector<Gap> &gaps, Bytes bytes) {
  if (any(gaps, [&](Bytes b) { return b + bytes > memory; }))
    return false;
  add(gaps, bytes);
  return true;
}

void Room::add(const std::vector<Gap> &gaps, Bytes bytes) {
  for (Gap gap : gaps)
    for (int k = gap.first; k <= gap.last; ++k) {
      over -= live[k] > memory;
      live[k] += bytes;
      over += live[k] > memory;
    }
}

} // namespace sluice::planner
