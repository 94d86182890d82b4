// SPDX-License-Identifier: Apache-2.0
// Best-fit packing in several orders, and the checks around it. Fixed items are placed first; every other item goes
// into the smallest gap that it fits among the placed items whose lifetimes meet its own, or above them.
#include "passes/planner/Pack.h"

#include "passes/planner/PackSearch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

namespace sluice::planner {

static Bytes roundUp(Bytes offset, Bytes alignment) { return (offset + alignment - 1) / alignment * alignment; }

static bool meet(const PackItem &a, const PackItem &b) { return a.lower < b.upper && b.lower < a.upper; }

// Sums are bounded here once, so that no arithmetic below can overflow.
Status checkItems(const std::vector<PackItem> &items) {
  const Bytes largest = Bytes(1) << 60;
  const int64_t mostTime = 1'000'000'000'000'000;
  Bytes total = 0;
  for (const PackItem &item : items) {
    const std::string who = "item '" + item.id + "' ";
    if (item.size < 0)
      return Error{who + "has size " + std::to_string(item.size)};
    if (item.upper <= item.lower)
      return Error{who + "lives from " + std::to_string(item.lower) + " to " + std::to_string(item.upper) +
                   ", which is empty"};
    if (std::min(item.lower, item.upper) < -mostTime || std::max(item.lower, item.upper) > mostTime)
      return Error{who + "lives from " + std::to_string(item.lower) + " to " + std::to_string(item.upper) +
                   ", times must lie between -1e15 and 1e15"};
    if (item.alignment < 1)
      return Error{who + "has alignment " + std::to_string(item.alignment)};
    if (item.offset && (*item.offset < 0 || *item.offset % item.alignment != 0))
      return Error{who + "is fixed at " + std::to_string(*item.offset) + ", alignment is " +
                   std::to_string(item.alignment)};
    const Bytes reach = item.offset ? *item.offset : 0;
    if (item.size > largest - total || item.alignment > largest - total - item.size || reach > largest - total)
      return Error{who + "brings the total size above " + std::to_string(largest)};
    total += item.size + (item.alignment > 1 ? item.alignment : 0);
  }
  if (const auto pair = fixedOverlap(items)) {
    const PackItem &one = items[pair->first], &other = items[pair->second];
    return Error{"items '" + one.id + "' and '" + other.id + "' are fixed at " + std::to_string(*one.offset) + " and " +
                 std::to_string(*other.offset) + ", where they overlap"};
  }
  return Success{};
}

// In order of birth, against the two neighbours by offset of those that live: what lives at one time does not overlap,
// or it would have been found before.
std::optional<std::pair<int, int>> fixedOverlap(const std::vector<PackItem> &items) {
  std::vector<int> byBirth;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].offset && items[i].size > 0)
      byBirth.push_back(i);
  std::stable_sort(byBirth.begin(), byBirth.end(), [&](int a, int b) { return items[a].lower < items[b].lower; });
  std::map<Bytes, int> living; // by offset; they do not overlap
  std::set<std::pair<int64_t, int>> byDeath;
  for (const int i : byBirth) {
    const PackItem &born = items[i];
    for (; !byDeath.empty() && byDeath.begin()->first <= born.lower; byDeath.erase(byDeath.begin()))
      living.erase(*items[byDeath.begin()->second].offset);
    const auto next = living.lower_bound(*born.offset);
    if (next != living.end() && next->first < *born.offset + born.size)
      return std::minmax(i, next->second);
    if (next != living.begin())
      if (const auto before = std::prev(next); before->first + items[before->second].size > *born.offset)
        return std::minmax(i, before->second);
    living[*born.offset] = i;
    byDeath.insert({born.upper, i});
  }
  return std::nullopt;
}

void countBeginnings(std::vector<PackItem> &items) {
  std::vector<int64_t> begins;
  for (const PackItem &item : items)
    begins.push_back(item.lower);
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  for (PackItem &item : items) {
    item.lower = std::lower_bound(begins.begin(), begins.end(), item.lower) - begins.begin();
    item.upper = std::lower_bound(begins.begin(), begins.end(), item.upper) - begins.begin();
  }
}

Bytes packLoad(const std::vector<PackItem> &items) {
  std::vector<std::pair<int64_t, Bytes>> changes;
  for (const PackItem &item : items) {
    changes.push_back({item.lower, item.size});
    changes.push_back({item.upper, -item.size});
  }
  std::sort(changes.begin(), changes.end()); // ends sort before starts at the same time: lifetimes are half-open
  Bytes now = 0, load = 0;
  for (auto [time, change] : changes)
    load = std::max(load, now += change);
  return load;
}

Status checkPacking(const std::vector<PackItem> &items, const Packing &packing) {
  if (packing.offsets.size() != items.size())
    return Error{"packing has " + std::to_string(packing.offsets.size()) + " offsets for " +
                 std::to_string(items.size()) + " items"};
  Bytes height = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Bytes offset = packing.offsets[i];
    height = std::max(height, offset + items[i].size);
    if (offset < 0 || offset % items[i].alignment != 0 || (items[i].offset && *items[i].offset != offset))
      return Error{"item '" + items[i].id + "' lies at " + std::to_string(offset) + " against its alignment " +
                   std::to_string(items[i].alignment) + " or fixed position"};
    for (size_t j = 0; j < i; ++j) // what is empty lies in nobody's way
      if (items[i].size > 0 && items[j].size > 0 && meet(items[i], items[j]) &&
          offset < packing.offsets[j] + items[j].size && packing.offsets[j] < offset + items[i].size)
        return Error{"items '" + items[j].id + "' at " + std::to_string(packing.offsets[j]) + " and '" + items[i].id +
                     "' at " + std::to_string(offset) + " overlap"};
  }
  if (height != packing.height)
    return Error{"packing claims height " + std::to_string(packing.height) + ", offsets reach " +
                 std::to_string(height)};
  return Success{};
}

namespace {

enum class Fit { Lowest, Smallest };

/// What has an offset, in order of offset and, where that is the same, of placement. In blocks, each with the times
/// that its items reach: to insert moves one block, and what lives at other times is passed over.
class Placed {
public:
  struct One {
    int64_t lower, upper;
    Bytes offset, end;
  };

  /// By offset, in blocks of at most `most` items, so that meeting() passes over all that live at other times. A full
  /// block is halved.
  void insert(const One &one) {
    auto after = std::upper_bound(blocks.begin(), blocks.end(), one.offset,
                                  [](Bytes o, const Block &b) { return o < b.items[0].offset; });
    if (blocks.empty())
      after = blocks.emplace(after);
    else if (after != blocks.begin())
      --after;
    std::vector<One> &items = after->items;
    items.insert(
        std::upper_bound(items.begin(), items.end(), one.offset, [](Bytes o, const One &p) { return o < p.offset; }),
        one);
    after->reach();
    if (items.size() < most)
      return;
    Block upper;
    upper.items.assign(items.begin() + most / 2, items.end());
    upper.reach();
    items.resize(most / 2);
    after->reach();
    blocks.insert(after + 1, std::move(upper));
  }

  /// Calls `visit` with all that live when `item` does, until it says true.
  template <typename Visit> void meeting(const PackItem &item, Visit visit) const {
    for (const Block &block : blocks)
      if (block.lower < item.upper && item.lower < block.upper)
        for (const One &one : block.items)
          if (one.lower < item.upper && item.lower < one.upper && visit(one))
            return;
  }

private:
  static constexpr size_t most = 128;
  /// Neighbours by offset, with the span of all their lifetimes.
  struct Block {
    std::vector<One> items;
    int64_t lower = 0, upper = 0;
    void reach() {
      lower = items[0].lower;
      upper = items[0].upper;
      for (const One &one : items) {
        lower = std::min(lower, one.lower);
        upper = std::max(upper, one.upper);
      }
    }
  };
  std::vector<Block> blocks;
};

/// Placement of one item after the other.
class BestFit {
public:
  BestFit(const std::vector<PackItem> &items, Fit fit) : items(items), fit(fit), offsets(items.size(), 0) {
    for (size_t i = 0; i < items.size(); ++i)
      if (items[i].offset)
        put(i, *items[i].offset);
  }

  Packing run(const std::vector<int> &order) {
    for (int i : order)
      if (!items[i].offset)
        put(i, find(items[i]));
    Packing packing;
    packing.height = height;
    packing.offsets = offsets;
    return packing;
  }

private:
  void put(int i, Bytes offset) {
    offsets[i] = offset;
    height = std::max(height, offset + items[i].size);
    placed.insert({items[i].lower, items[i].upper, offset, offset + items[i].size});
  }

  /// Where an item goes: into the smallest gap between placed items that live when it does, or into the lowest, or on
  /// top.
  Bytes find(const PackItem &item) const {
    Bytes best = -1, bestGap = 0, top = 0;
    placed.meeting(item, [&](const Placed::One &p) {
      const Bytes gap = p.offset - top;
      if (gap >= item.size && (best < 0 || gap < bestGap)) // first what costs no division
        if (const Bytes at = roundUp(top, item.alignment); at + item.size <= p.offset) {
          best = at;
          bestGap = gap;
        }
      top = std::max(top, p.end);
      return best >= 0 && fit == Fit::Lowest;
    });
    return best >= 0 ? best : roundUp(top, item.alignment);
  }

  const std::vector<PackItem> &items;
  const Fit fit;
  std::vector<Bytes> offsets;
  Placed placed;
  Bytes height = 0;
};

/// Items by a key, the largest first.
struct Order {
  const char *name;
  double (*key)(const PackItem &); ///< descending
};

/// First-fit again and again: what ended above the target moves forward in the order, ahead of everything that it
/// overlaps in time by a little more each time. Deterministic; `rounds` runs at most.
Packing repeatedFit(const std::vector<PackItem> &items, Fit fit, double (*key)(const PackItem &), Bytes target,
                    int rounds) {
  std::vector<double> weight;
  for (const PackItem &item : items)
    weight.push_back(key(item));
  Packing best;
  best.height = std::numeric_limits<Bytes>::max();
  for (int round = 0; round < rounds && best.height > target; ++round) {
    std::vector<int> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weight[a] > weight[b]; });
    Packing packing = BestFit(items, fit).run(order);
    for (size_t i = 0; i < items.size(); ++i)
      if (packing.offsets[i] + items[i].size > target)
        weight[i] *= 1.25 + 0.05 * (round % 7); // uneven steps, so that two items do not swap places forever
    if (packing.height < best.height)
      best = std::move(packing);
  }
  return best;
}

double bySize(const PackItem &i) { return i.size; }
double byArea(const PackItem &i) { return double(i.size) * i.width(); }
double byWidth(const PackItem &i) { return i.width(); }
double byBirth(const PackItem &i) { return -double(i.lower); }
double byDeath(const PackItem &i) { return i.upper; }

// Squares of the items up to which more is tried than orders: repeated fits for their time, the search for its space as
// well.
constexpr double mostRepeated = 4e8, mostSearched = 7e7;

} // namespace

// Orders first, then repeated fits, then the exact search: each only while what it has is above the target, and only as
// far as the number of items lets it end in a second or so. `optimal` is proved by the load alone, or by the search.
Packing pack(const std::vector<PackItem> &items, const PackOptions &options) {
  Packing best;
  best.height = std::numeric_limits<Bytes>::max();
  const Bytes load = packLoad(items), target = std::max(load, options.goodEnough);
  const Order orders[] = {
      {"size", bySize}, {"width", byWidth}, {"area", byArea}, {"birth", byBirth}, {"death", byDeath}};
  // An order costs about the square of the items; the largest instances get few.
  const double squared = double(items.size()) * items.size();
  int tried = 0;
  for (const Order &order : orders)
    for (Fit fit : {Fit::Smallest, Fit::Lowest}) {
      if (best.height <= target || squared * tried > 4e9)
        continue;
      ++tried;
      std::vector<int> sorted(items.size());
      std::iota(sorted.begin(), sorted.end(), 0);
      std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
        const double ka = order.key(items[a]), kb = order.key(items[b]);
        return ka != kb ? ka > kb : items[a].size > items[b].size;
      });
      Packing packing = BestFit(items, fit).run(sorted);
      if (packing.height < best.height) {
        best = std::move(packing);
        best.method = std::string(fit == Fit::Smallest ? "best-fit " : "first-fit ") + order.name;
      }
    }
  const int rounds = squared > mostRepeated ? 0 : static_cast<int>(std::clamp(1e8 / std::max(1.0, squared), 5.0, 60.0));
  for (const Order &order : {orders[2], orders[0], orders[1]})
    if (best.height > target && options.nodeLimit > 0 && rounds > 0) {
      Packing packing = repeatedFit(items, Fit::Lowest, order.key, target, rounds);
      if (packing.height < best.height) {
        best = std::move(packing);
        best.method = std::string("repeated first-fit ") + order.name;
      }
    }
  best.load = load;
  best.optimal = best.height == load;
  if (best.height > target && options.nodeLimit > 0 && squared <= mostSearched)
    searchPacking(items, options, best);
  return best;
}

/// Named by tensor and first step, so that messages can tell the lives of one tensor apart.
std::vector<PackItem> packItems(const Problem &problem, const Program &program) {
  std::vector<PackItem> items;
  for (const Life &life : program.lives) {
    const bool workspace = life.form == Life::Form::Workspace;
    std::string id = workspace ? "workspace of " + problem.ops[program.steps[life.first].op].name
                               : problem.buffers[life.buffer].name;
    if (life.form == Life::Form::Packed)
      id += " encoded";
    if (life.bytes > 0)
      items.push_back(
          {id + "@" + std::to_string(life.first), life.first, life.last + 1, life.bytes, problem.alignment, {}});
  }
  return items;
}

} // namespace sluice::planner
