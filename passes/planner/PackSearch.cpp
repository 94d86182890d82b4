// SPDX-License-Identifier: Apache-2.0
// Depth-first search over canonical packings: items are placed in order of non-decreasing offset, each at the lowest
// offset that the items placed before it allow. From MiniMalloc: section floors, dominance by what would still fit
// below, hatless items, decomposition at sections without unplaced items, three static orders. Ours: an offset is ruled
// out for all when some section could no longer take what it still has to (the "deadline" below), floors keep a witness
// item so that most placements recompute few of them, and runs are short and restarted with shaken orders (Luby's
// sequence), because their lengths are heavy-tailed: instead of doubling limits on three orders. Complexity:
// exponential; each node costs O(neighbours + affected sections * items in a section).
#include "passes/planner/PackSearch.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

namespace sluice::planner {

namespace {

constexpr Bytes none = std::numeric_limits<Bytes>::max();

/// Items with their sections (intervals between neighbouring starts and ends), shared by all searches.
struct Instance {
  explicit Instance(const std::vector<PackItem> &items);

  struct Item {
    int first, last; ///< sections, both included
    Bytes size, alignment, fixed;
    std::vector<int> neighbours; ///< items whose lifetimes meet this one's
  };
  std::vector<Item> items;
  std::vector<std::vector<int>> sections; ///< items of each section
  std::vector<Bytes> totals;
};

Instance::Instance(const std::vector<PackItem> &from) {
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
    items.push_back({index(from[i].lower),
                     index(from[i].upper) - 1,
                     from[i].size,
                     from[i].alignment,
                     from[i].offset.value_or(-1),
                     {}});
    for (int s = items[i].first; s <= items[i].last; ++s) {
      sections[s].push_back(i);
      totals[s] += from[i].size;
    }
  }
  for (int i = 0; i < static_cast<int>(items.size()); ++i)
    for (int j = 0; j < static_cast<int>(items.size()); ++j)
      if (i != j && items[i].first <= items[j].last && items[j].first <= items[i].last)
        items[i].neighbours.push_back(j);
}

/// One search for a packing within `capacity`, under one static order.
class Search {
public:
  enum class Outcome { Found, Exhausted, OutOfNodes };

  Search(const Instance &instance, const std::vector<int> &order, Bytes capacity, int64_t nodeLimit)
      : in(instance), capacity(capacity), nodeLimit(nodeLimit), rank(order.size()), offset(order.size(), -1),
        lowest(order.size(), 0), unplacedNeighbours(order.size()), floor(in.sections.size(), 0), rest(in.totals),
        witness(in.sections.size(), -1) {
    for (size_t i = 0; i < order.size(); ++i)
      rank[order[i]] = i;
    for (size_t i = 0; i < order.size(); ++i)
      unplacedNeighbours[i] = in.items[i].neighbours.size();
    for (size_t s = 0; s < in.sections.size(); ++s)
      witness[s] = in.sections[s].empty() ? -1 : in.sections[s][0];
    all = order;
  }

  Outcome run() {
    for (size_t s = 0; s < rest.size(); ++s)
      if (rest[s] > capacity)
        return Outcome::Exhausted;
    if (solveParts(all, -1, -1))
      return Outcome::Found;
    return nodes >= nodeLimit ? Outcome::OutOfNodes : Outcome::Exhausted;
  }

  int64_t nodes = 0;
  const std::vector<Bytes> &offsets() const { return offset; }

private:
  struct Candidate {
    Bytes offset;
    int item;
  };
  struct Undo {
    enum Kind { Lowest, Floor } kind;
    int index, oldWitness;
    Bytes old;
  };

  bool solveParts(const std::vector<int> &unplaced, Bytes last, int lastRank);
  bool solve(const std::vector<int> &unplaced, Bytes last, int lastRank);
  std::vector<Candidate> candidates(const std::vector<int> &unplaced, Bytes last, int lastRank) const;
  bool place(int item, Bytes at);
  bool raise(int item, Bytes to);
  bool refresh(int section);
  void unwind(size_t placedBefore, size_t mark);
  Bytes offsetFor(int i) const { return in.items[i].fixed >= 0 ? in.items[i].fixed : lowest[i]; }

  const Instance &in;
  const Bytes capacity;
  const int64_t nodeLimit;
  std::vector<int> rank, all;
  std::vector<Bytes> offset, lowest;
  std::vector<int> unplacedNeighbours;
  std::vector<Bytes> floor, rest; ///< of a section: lowest offset of an unplaced item, total size of the unplaced ones
  std::vector<int> witness;       ///< unplaced item that attains the floor
  std::vector<int> placedItems;   ///< in order of placement
  std::vector<Undo> log;
};

/// Splits unplaced items where no section has one, and solves the parts one by one: a part that fails fails the whole.
bool Search::solveParts(const std::vector<int> &unplaced, Bytes last, int lastRank) {
  if (unplaced.empty())
    return true;
  std::vector<std::pair<int, int>> spans;
  for (int i : unplaced)
    spans.push_back({in.items[i].first, in.items[i].last});
  std::sort(spans.begin(), spans.end());
  std::vector<int> ends; // last section of each part
  int end = spans[0].second;
  for (auto [first, lastSection] : spans) {
    if (first > end)
      ends.push_back(end);
    end = std::max(end, lastSection);
  }
  if (ends.empty())
    return solve(unplaced, last, lastRank);
  ends.push_back(end);
  std::vector<std::vector<int>> parts(ends.size());
  for (int i : unplaced)
    parts[std::lower_bound(ends.begin(), ends.end(), in.items[i].first) - ends.begin()].push_back(i);
  std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.size() < b.size(); });
  return std::all_of(parts.begin(), parts.end(), [&](const auto &part) { return solve(part, last, lastRank); });
}

std::vector<Search::Candidate> Search::candidates(const std::vector<int> &unplaced, Bytes last, int lastRank) const {
  Bytes height = none, fullest = 0;
  int first = in.sections.size(), end = 0;
  for (int i : unplaced) {
    // A floating item without unplaced neighbours is never lifted.
    if (lowest[i] < last && in.items[i].fixed < 0 && unplacedNeighbours[i] == 0)
      return {};
    if (in.items[i].fixed < 0)
      height = std::min(height, lowest[i] + in.items[i].size);
    first = std::min(first, in.items[i].first);
    end = std::max(end, in.items[i].last + 1);
  }
  for (int s = first; s < end; ++s)
    fullest = std::max(fullest, rest[s]);
  const Bytes deadline = capacity - fullest;
  std::vector<Candidate> found;
  for (int i : unplaced) {
    const Bytes at = offsetFor(i);
    // Below `last` an item would float: it has to wait until a neighbour lifts it. At `last` the order breaks the tie.
    if (lowest[i] < last && in.items[i].fixed < last)
      continue;
    if (at < height && at <= deadline && (at > last || rank[i] > lastRank))
      found.push_back({at, i});
  }
  std::sort(found.begin(), found.end(), [&](const Candidate &a, const Candidate &b) {
    return a.offset != b.offset ? a.offset < b.offset : rank[a.item] < rank[b.item];
  });
  return found;
}

bool Search::solve(const std::vector<int> &unplaced, Bytes last, int lastRank) {
  for (const Candidate &c : candidates(unplaced, last, lastRank)) {
    if (++nodes > nodeLimit)
      return false;
    const size_t mark = log.size(), placedBefore = placedItems.size();
    const bool hatless = unplacedNeighbours[c.item] == 0;
    bool ok = place(c.item, c.offset);
    if (ok) {
      std::vector<int> rest;
      rest.reserve(unplaced.size());
      for (int i : unplaced)
        if (i != c.item)
          rest.push_back(i);
      ok = solveParts(rest, c.offset, rank[c.item]);
    }
    if (ok)
      return true;
    unwind(placedBefore, mark);
    // Nothing will ever stand on a hatless item, so placing it now took nothing from the others.
    if (hatless || nodes > nodeLimit)
      return false;
  }
  return unplaced.empty();
}

bool Search::raise(int i, Bytes to) {
  to = (to + in.items[i].alignment - 1) / in.items[i].alignment * in.items[i].alignment;
  if (to <= lowest[i])
    return true;
  log.push_back({Undo::Lowest, i, 0, lowest[i]});
  lowest[i] = to;
  return to + in.items[i].size <= capacity && (in.items[i].fixed < 0 || to <= in.items[i].fixed);
}

/// Recomputes the floor of a section whose witness was placed or raised; false when the section overflows.
bool Search::refresh(int s) {
  Bytes least = none;
  int by = -1;
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

bool Search::place(int item, Bytes at) {
  const auto &placed = in.items[item];
  offset[item] = at;
  placedItems.push_back(item);
  for (int s = placed.first; s <= placed.last; ++s)
    rest[s] -= placed.size;
  bool ok = at + placed.size <= capacity;
  int first = placed.first, last = placed.last;
  for (int n : placed.neighbours) {
    --unplacedNeighbours[n];
    if (offset[n] >= 0 || !ok)
      continue;
    const Bytes before = lowest[n];
    ok = raise(n, at + placed.size);
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
void Search::unwind(size_t placedBefore, size_t mark) {
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
  for (; placedItems.size() > placedBefore; placedItems.pop_back()) {
    const int item = placedItems.back();
    offset[item] = -1;
    for (int s = in.items[item].first; s <= in.items[item].last; ++s)
      rest[s] += in.items[item].size;
    for (int n : in.items[item].neighbours)
      ++unplacedNeighbours[n];
  }
}

/// MiniMalloc's three static orders: W width of the lifetime, A area, T largest total of a section it crosses; all
/// descending.
std::vector<std::vector<int>> staticOrders(const Instance &in) {
  struct Keys {
    double w, a, t;
  };
  std::vector<Keys> keys;
  for (const auto &item : in.items) {
    const double width = item.last - item.first + 1;
    Bytes total = 0;
    for (int s = item.first; s <= item.last; ++s)
      total = std::max(total, in.totals[s]);
    keys.push_back({width, width * item.size, static_cast<double>(total)});
  }
  auto sorted = [&](double Keys::*x, double Keys::*y, double Keys::*z) {
    std::vector<int> order(in.items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
      return std::make_tuple(keys[i].*x, keys[i].*y, keys[i].*z) > std::make_tuple(keys[j].*x, keys[j].*y, keys[j].*z);
    });
    return order;
  };
  return {sorted(&Keys::w, &Keys::a, &Keys::t), sorted(&Keys::t, &Keys::a, &Keys::w),
          sorted(&Keys::t, &Keys::w, &Keys::a)};
}

/// Luby's sequence 1 1 2 1 1 2 4 ...: short runs often, long ones now and then.
int64_t luby(int64_t i) {
  for (int64_t k = 1;; ++k) {
    if (i == (int64_t(1) << k) - 1)
      return int64_t(1) << (k - 1);
    if (i < (int64_t(1) << k) - 1)
      return luby(i - (int64_t(1) << (k - 1)) + 1);
  }
}

/// The order with every place shifted at random by up to `noise` of its length; the same for the same engine state.
std::vector<int> shaken(const std::vector<int> &order, double noise, std::mt19937 &random) {
  std::vector<std::pair<double, int>> keyed;
  for (size_t i = 0; i < order.size(); ++i)
    keyed.push_back({i + noise * order.size() * (random() / 4294967296.0), order[i]});
  std::sort(keyed.begin(), keyed.end());
  std::vector<int> result;
  for (auto [key, item] : keyed)
    result.push_back(item);
  return result;
}

/// Asks for `capacity` with at most `limit` nodes.
Search::Outcome searchCapacity(const Instance &in, Bytes capacity, int64_t limit, Packing &best) {
  const auto orders = staticOrders(in);
  const double noises[] = {0.05, 0.05, 0.1, 0.3};
  std::mt19937 random(1);
  int64_t used = 0;
  for (int64_t run = 0; used < limit; ++run) {
    const int64_t length = 1000 * luby(run + 1);
    // The unshaken orders come first, and again for the long runs.
    const bool plain = run < static_cast<int64_t>(orders.size()) || length >= 64000;
    const auto &order = orders[run % orders.size()];
    Search search(in, plain ? order : shaken(order, noises[run / 3 % 4], random), capacity,
                  std::min(length, limit - used));
    const Search::Outcome outcome = search.run();
    used += std::max<int64_t>(search.nodes, 1);
    best.nodes += search.nodes;
    if (outcome == Search::Outcome::Found) {
      best.offsets = search.offsets();
      best.height = 0;
      for (size_t i = 0; i < in.items.size(); ++i)
        best.height = std::max(best.height, best.offsets[i] + in.items[i].size);
      best.method = "search";
    }
    if (outcome != Search::Outcome::OutOfNodes)
      return outcome;
  }
  return Search::Outcome::OutOfNodes;
}

} // namespace

void searchPacking(const std::vector<PackItem> &items, const PackOptions &options, Packing &best) {
  const Instance in(items);
  const Bytes load = packLoad(items), target = std::max(load, options.goodEnough);
  Bytes refuted = load - 1; // largest capacity known not to suffice
  // The target first: on real programs it is usually reachable. Then halve what remains.
  Bytes ask = target;
  while (best.height > target && ask < best.height && best.nodes < options.nodeLimit) {
    const int64_t left = options.nodeLimit - best.nodes;
    // With a height that is good enough nothing else is worth a node.
    const int64_t share =
        options.goodEnough >= load && ask == target ? left : std::max<int64_t>(1000, left / (ask == target ? 2 : 4));
    const Search::Outcome outcome = searchCapacity(in, ask, share, best);
    if (outcome == Search::Outcome::Exhausted && ask == refuted + 1)
      refuted = ask;
    const Bytes low = outcome == Search::Outcome::Found ? target : ask;
    const Bytes next = low + (best.height - low) / 2;
    if (next == ask || next >= best.height)
      break;
    ask = next;
  }
  best.optimal = best.height == load || best.height == refuted + 1;
}

} // namespace sluice::planner
