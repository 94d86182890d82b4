// SPDX-License-Identifier: Apache-2.0
// Parts of a step: where values are cut, and what a part of an op reads.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// What the rows are that a step is cut into.
enum class CutAlong {
  Batch, ///< samples
  Image  ///< rows of images, or slices of volumes: the first spatial dimension
};

/// [begin, end) of one dimension.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Rows &other) const { return begin == other.begin && end == other.end; }
};

/// A value in parts: part i is [borders[i], borders[i + 1]) of `dim`. There is one border more than parts, from 0 to
/// the extent; no part is empty.
struct Cut {
  unsigned dim = 0;
  llvm::SmallVector<int64_t> borders;
  Rows part(int64_t i) const { return {borders[i], borders[i + 1]}; }
};

/// What each part of an op reads of an operand. Rows of neighbours may overlap, as those of windows do.
struct Slabs {
  unsigned dim = 0;
  llvm::SmallVector<Rows> rows;
};

/// What the results of a part have to do with that of all rows.
enum class PartResult {
  Rows,      ///< it is some rows of it
  Share,     ///< all parts' results added up are it
  Mean,      ///< it is their mean, each weighted by its number of rows
  Statistics ///< mean and 1/sqrt(variance + epsilon), of which all parts' make those of all rows
};

/// How an op is computed in parts.
struct PartRule {
  llvm::SmallVector<std::optional<Slabs>> operands; ///< none: all is read
  PartResult results = PartResult::Rows;
  bool scaled = false;            ///< the result is that of all rows once it is multiplied by the part's share of them
  std::optional<unsigned> viewed; ///< the dimension of the views that attention reads by
  int64_t first = 0; ///< the op is told by `first` how many rows or elements stand before: so many for each sample
  llvm::SmallVector<std::pair<int64_t, int64_t>> pads; ///< of windows: in front of each part and after it
};

} // namespace sluice
