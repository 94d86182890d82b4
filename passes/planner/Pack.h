// SPDX-License-Identifier: Apache-2.0
// Static packing: fixed lifetimes in, offsets of one arena out. (What codecs do to bytes is packing, too: Packings.h.)
// Two items may share addresses only if their lifetimes
// are disjoint; a lifetime must therefore reach to where the program orders the next user of the bytes after the last
// one, copies included.
#pragma once

#include "passes/planner/Program.h"
#include "runtime/Result.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::planner {

/// Occupies `size` bytes at every time t with lower <= t < upper, at a multiple of `alignment`.
struct PackItem {
  std::string id;
  int64_t lower = 0, upper = 0;
  Bytes size = 0;
  Bytes alignment = 1;
  std::optional<Bytes> offset; ///< fixed position
  bool high = false;           ///< a pool's allocator places it at the high end, see Pool.h; packing does not look

  /// Of the lifetime. Files may hold any times; the difference of two need not be an int64_t.
  double width() const { return double(upper) - double(lower); }
};

/// Nodes for a plan that is compared with others: its height may be a little more than it need be.
inline constexpr int64_t sketchNodes = 2000;

struct PackOptions {
  /// Packing stops as soon as the height is at most this; 0 stops at the load bound only.
  Bytes goodEnough = 0;
  /// Nodes of the exact search, over all its restarts; 0 leaves it out. Nodes, not seconds: the result is
  /// deterministic.
  int64_t nodeLimit = 2'000'000;
  /// Items that those nodes look at, some nanoseconds each: one node of a large instance may look at millions.
  int64_t workLimit = 1'000'000'000;
};

/// What pack() found. Offsets count from the start of the arena that is packed, which for programs is the end of the
/// base.
struct Packing {
  Bytes height = 0;            ///< largest offset + size
  Bytes load = 0;              ///< largest total size alive at one time: no packing is lower
  std::vector<Bytes> offsets;  ///< one per item
  bool optimal = false;        ///< proved: height equals load, or the search exhausted every lower height
  int64_t nodes = 0, work = 0; ///< that the exact search used
  std::string method;          ///< what found it: "best-fit size", "search", ...
};

/// Refuses items that make no sense (negative size, empty lifetime, overflow, fixed overlap), by the item and its
/// numbers.
Status checkItems(const std::vector<PackItem> &items);

/// Two items with fixed positions that overlap while both live, by their numbers.
std::optional<std::pair<int, int>> fixedOverlap(const std::vector<PackItem> &items);

/// Counts time in items that begin. Who meets whom stays as it is, but lives are as long as what happens in them:
/// packing tries long ones early and late, and does not depend on how finely the caller cuts time.
void countBeginnings(std::vector<PackItem> &items);

/// Largest total size alive at one time.
Bytes packLoad(const std::vector<PackItem> &items);

/// Best-fit in several orders (non-offloaded-high-end is not among them: see tools/bench/reproduce/VdnnPool.h), then
/// the exact search of PackSearch.h. Items must pass checkItems().
Packing pack(const std::vector<PackItem> &items, const PackOptions &options = {});

/// Independent validation, plain O(n^2), for tests and `sluice-plan --pack`: names the first violation with both items
/// and their numbers. Programs are checked by verify-schedule.
Status checkPacking(const std::vector<PackItem> &items, const Packing &packing);

/// The plan's lives as items, times in steps; base is not among them.
std::vector<PackItem> packItems(const Problem &problem, const Program &program);

} // namespace sluice::planner
