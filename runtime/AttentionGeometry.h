// SPDX-License-Identifier: Apache-2.0
// The extents of an attention, and where in its masks an element stands.
#pragma once

#include "runtime/Math.h"
#include "runtime/Tensor.h"

namespace sluice {

/// Where an operand's elements stand: a row's are neighbours.
struct AttentionView {
  int64_t offset = 0, steps[Shape::maxRank] = {}; ///< in elements; a step for each leading dimension
  int64_t row = 0;                                ///< from one row to the next
};

/// Lists of an offset, a step for each leading dimension and one for rows; empty: row-major.
struct AttentionViews {
  Shape q, k, v, y;
};

/// Where a mask's elements stand: steps in elements from one member, row or key to the next, 0 where it broadcasts.
struct AttentionMask {
  bool present = false;
  int64_t steps[Shape::maxRank] = {}; ///< a step for each leading dimension
  int64_t row = 0, key = 0;
};

struct AttentionGeometry {
  int64_t members = 1; ///< product of the leading dimensions
  int64_t rows, keys, depth, columns;
  int leading = 0;
  int64_t extents[Shape::maxRank] = {}; ///< of the leading dimensions
  AttentionMask mask, kept;
  AttentionView q, k, v, y; ///< y [..,rows,columns]

  /// q [..,rows,depth], k [..,keys,depth], v [..,keys,columns] with equal leading dimensions; mask and kept broadcast
  /// to [..,rows,keys], rank 0 for none. Throws std::invalid_argument naming `node` otherwise, for kept without a mask,
  /// and for a view of another rank.
  AttentionGeometry(const char *node, const Shape &q, const Shape &k, const Shape &v, const Shape &mask,
                    const Shape &kept = {}, const AttentionViews &views = {});

  /// The first element of a member's q, k, v or y.
  SLUICE_KERNEL int64_t start(const AttentionView &view, int64_t member) const {
    return view.offset + distance(view.steps, member);
  }

  /// The first element of a member's mask.
  SLUICE_KERNEL int64_t start(const AttentionMask &mask, int64_t member) const { return distance(mask.steps, member); }
  /// Keys that a row may look at under a causal mask are those below this.
  SLUICE_KERNEL int64_t visibleKeys(int64_t row) const { return row + 1 < keys ? row + 1 : keys; }

  /// Of row-major [..,rows,columns], of any number of rows and columns.
  AttentionView rowMajor(int64_t rows, int64_t columns) const;

private:
  /// From the first member to this one, by a step for each leading dimension.
  SLUICE_KERNEL int64_t distance(const int64_t *steps, int64_t member) const {
    int64_t sum = 0;
    for (int i = leading - 1; i >= 0; --i) {
      sum += member % extents[i] * steps[i];
      member /= extents[i];
    }
    return sum;
  }
};

} // namespace sluice
