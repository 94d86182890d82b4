// SPDX-License-Identifier: Apache-2.0
// Depth-first search over canonical packings: items are placed in order of non-decreasing offset, each at the lowest
// offset that the items placed before it allow.
//
// From MiniMalloc: section floors, dominance by what would still fit below, hatless items, decomposition where no
// unplaced item crosses from one section to the next, after which the parts are sorted anew by what is left of them.
// Ours: an offset is ruled out for all when some section could
// no longer take what it still has to (the "deadline" below), floors keep a witness item so that most placements
// recompute few of them, and states that failed once are not searched again.
//
// Complexity: exponential; each node costs O(unplaced items + neighbours + affected sections * items in a section), so
// both nodes and what they look at are limited; space is quadratic in the items.
#include "passes/planner/CapacitySearch.h"

#include <array>
#include <limits>

namespace sluice::planner {

static constexpr Bytes none = std::numeric_limits<Bytes>::max();

/// Ranks by MiniMalloc's orders WAT, TAW, TWA: W width of the lifetime, A area, T largest total of a section that the
/// item crosses, of what is still unplaced; all descending.
void CapacitySearch::sortAnew(std::vector<int> &part) {
  std::vector<std::pair<std::array<double, 3>, int>> keyed;
  for (int i : part) {
    const auto &item = in.items[i];
    const double w = item.width, a = w * static_cast<double>(item.size);
    const double t = static_cast<double>(*std::max_element(rest.begin() + item.first, rest.begin() + item.last + 1));
    const std::array<double, 3> keys[] = {{-w, -a, -t}, {-t, -a, -w}, {-t, -w, -a}};
    keyed.push_back({keys[heuristic], i});
  }
  std::sort(keyed.begin(), keyed.end());
  for (size_t k = 0; k < keyed.size(); ++k) {
    part[k] = keyed[k].second;
    rank[part[k]] = static_cast<int>(k);
  }
}

/// Solves the parts that share no section one by one, small ones first: one that fails fails the whole.
bool CapacitySearch::solveParts(const std::vector<int> &unplaced) {
  std::vector<int> byStart(unplaced);
  std::sort(byStart.begin(), byStart.end(), [&](int a, int b) {
    return in.items[a].first != in.items[b].first ? in.items[a].first < in.items[b].first : a < b;
  });
  std::vector<std::vector<int>> parts;
  int end = -1;
  for (int i : byStart) {
    if (in.items[i].first > end)
      parts.emplace_back();
    parts.back().push_back(i);
    end = std::max(end, in.items[i].last);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.size() < b.size(); });
  for (std::vector<int> &part : parts) {
    sortAnew(part);
    if (!solve(part, {0, ++orders, -1}))
      return false;
  }
  return true;
}

FailedStates::Key CapacitySearch::keyOf(const std::vector<int> &unplaced) const {
  FailedStates::Key key;
  for (int i : unplaced)
    key.add(i, lowest[i]);
  return key;
}

/// Items that may be placed next, lowest first: none as high as another one could end (dominance, as in MiniMalloc),
/// none above the deadline. None at all where an item that nothing can lift any more lies too low.
std::vector<CapacitySearch::Candidate> CapacitySearch::candidates(const std::vector<int> &unplaced,
                                                                  const Progress &at) const {
  Bytes height = none, fullest = 0;
  int first = in.sections.size(), end = 0;
  for (int i : unplaced) {
    const auto &item = in.items[i];
    // A floating item without unplaced neighbours is never lifted.
    if (lowest[i] < at.offset && item.fixed < 0 && unplacedNeighbours[i] == 0)
      return {};
    if (item.fixed < 0)
      height = std::min(height, lowest[i] + item.size);
    first = std::min(first, item.first);
    end = std::max(end, item.last + 1);
  }
  for (int s = first; s < end; ++s)
    fullest = std::max(fullest, rest[s]);
  const Bytes deadline = capacity - fullest;
  std::vector<Candidate> found;
  for (int i : unplaced) {
    const Bytes fixed = in.items[i].fixed, here = fixed >= 0 ? fixed : lowest[i];
    // Below `at` an item would float: it has to wait until a neighbour lifts it. At `at` the order breaks the tie.
    if (lowest[i] < at.offset && fixed < at.offset)
      continue;
    if (here < height && here <= deadline && (here > at.offset || rank[i] > at.rank))
      found.push_back({here, i});
  }
  std::sort(found.begin(), found.end(), [&](const Candidate &a, const Candidate &b) {
    return a.offset != b.offset ? a.offset < b.offset : rank[a.item] < rank[b.item];
  });
  return found;
}

/// Whether all of `unplaced` fit, by trying each candidate in turn. On failure everything is as it was, and the state
/// is remembered unless a limit ended the search: that proves nothing.
bool CapacitySearch::solve(const std::vector<int> &unplaced, const Progress &at) {
  if (unplaced.empty())
    return true;
  work += unplaced.size();
  const FailedStates::Key key = keyOf(unplaced);
  if (failed.contains(key, at))
    return false;
  for (const Candidate &c : candidates(unplaced, at)) {
    if (++nodes > nodeLimit || work > workLimit)
      return false;
    if (fits(c, unplaced, at.order))
      return true;
    if (nodes > nodeLimit || work > workLimit)
      return false;
    // Nothing will ever stand on a hatless item, so placing it now took nothing from the others.
    if (unplacedNeighbours[c.item] == 0)
      break;
  }
  failed.add(key, at);
  return false;
}

/// Whether all fit with the candidate where it would stand; if not, everything is as before.
bool CapacitySearch::fits(const Candidate &candidate, const std::vector<int> &unplaced, int64_t order) {
  const size_t mark = log.size(), placedBefore = placedItems.size();
  if (place(candidate.item, candidate.offset) && descend(unplaced, candidate.item, order))
    return true;
  unwind(placedBefore, mark);
  return false;
}

/// True when no unplaced item connects the sections of `item`, which was placed, any more.
bool CapacitySearch::splits(int item) const {
  const auto &i = in.items[item];
  return std::find(crossing.begin() + i.first, crossing.begin() + i.last, 0) != crossing.begin() + i.last;
}

/// What is left after `placed`. Parts get an order of their own; when they fail, the ranks are as before.
bool CapacitySearch::descend(const std::vector<int> &unplaced, int placed, int64_t order) {
  std::vector<int> left;
  left.reserve(unplaced.size());
  for (int i : unplaced)
    if (i != placed)
      left.push_back(i);
  if (!splits(placed))
    return solve(left, {offset[placed], order, rank[placed]});
  std::vector<int> ranks;
  for (int i : left)
    ranks.push_back(rank[i]);
  if (solveParts(left))
    return true;
  for (size_t k = 0; k < left.size(); ++k)
    rank[left[k]] = ranks[k];
  return false;
}

/// A placed neighbour lifts an item at least so high; false where it then fits no more, or its fixed place lies below.
bool CapacitySearch::raise(int i, Bytes to) {
  to = (to + in.items[i].alignment - 1) / in.items[i].alignment * in.items[i].alignment;
  if (to <= lowest[i])
    return true;
  log.push_back({Undo::Lowest, i, 0, lowest[i]});
  lowest[i] = to;
  return to + in.items[i].size <= capacity && (in.items[i].fixed < 0 || to <= in.items[i].fixed);
}

/// Recomputes the floor of a section whose witness was placed or raised; false when the section overflows.
bool CapacitySearch::refresh(int s) {
  Bytes least = none;
  int by = -1;
  work += in.sections[s].size();
  for (int i : in.sections[s])
    if (offset[i] < 0 && lowest[i] < least) {
      least = lowest[i];
      by = i;
    }
  if (by < 0)
    return true;
  log.push_back({Undo::Floor, s, witness[s], floor[s]});
  floor[s] = least;
  witness[s] = by;
  return least + rest[s] <= capacity;
}

/// Places an item, lifts all that meet it, and brings up to date the floors of the sections that this may change. False
/// where some section can no longer take what it has to; unwind() takes it back in either case.
bool CapacitySearch::place(int item, Bytes at) {
  const auto &placed = in.items[item];
  work += placed.neighbours.size();
  offset[item] = at;
  placedItems.push_back(item);
  for (int s = placed.first; s <= placed.last; ++s)
    rest[s] -= placed.size;
  for (int s = placed.first; s < placed.last; ++s)
    --crossing[s];
  bool ok = at + placed.size <= capacity;
  int first = placed.first, last = placed.last;
  for (int n : placed.neighbours) {
    --unplacedNeighbours[n];
    if (offset[n] >= 0 || !ok)
      continue;
    const Bytes before = lowest[n];
    ok = raise(n, at + placed.size);
    // Sections in which only a neighbour has moved may have another floor, too.
    if (lowest[n] != before) {
      first = std::min(first, in.items[n].first);
      last = std::max(last, in.items[n].last);
    }
  }
  for (int s = first; ok && s <= last; ++s)
    if (witness[s] >= 0 && (offset[witness[s]] >= 0 || lowest[witness[s]] != floor[s]))
      ok = refresh(s);
  return ok;
}

/// Takes back every placement since, those of solved parts included.
void CapacitySearch::unwind(size_t placedBefore, size_t mark) {
  while (log.size() > mark) {
    const Undo &u = log.back();
    if (u.kind == Undo::Lowest) {
      lowest[u.index] = u.old;
    } else {
      floor[u.index] = u.old;
      witness[u.index] = u.oldWitness;
    }
    log.pop_back();
  }
  for (; placedItems.size() > placedBefore; placedItems.pop_back())
    lift(placedItems.back());
}

/// Undoes what place() counted for an item.
void CapacitySearch::lift(int item) {
  const auto &placed = in.items[item];
  offset[item] = -1;
  for (int s = placed.first; s <= placed.last; ++s)
    rest[s] += placed.size;
  for (int s = placed.first; s < placed.last; ++s)
    ++crossing[s];
  for (int n : placed.neighbours)
    ++unplacedNeighbours[n];
}

} // namespace sluice::planner
