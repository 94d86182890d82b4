// SPDX-License-Identifier: Apache-2.0
// How kernels that sum over rows cut a matrix [rows, columns] into tasks. The cut depends on the extents alone, never
// on the number of threads. A task is a range of rows by a tile of columns; it sums short blocks of rows in float, adds
// those to doubles in scratch, and the row chunks of a column are combined in order.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

struct Columns {
  /// Columns of a task: accumulators stay in the first-level cache, and rows are read a page at a time.
  static constexpr int64_t tileWidth = 1024;
  static constexpr int64_t groupWidth = 256; ///< length of a wide row of short ones
  static constexpr int64_t block = 32;       ///< rows summed in float before they join the doubles

  Columns() = default;
  Columns(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    tiles = std::max<int64_t>(1, (columns + tileWidth - 1) / tileWidth);
    const int64_t wanted = std::min(rows * columns / (int64_t(1) << 14), int64_t(64)) / tiles;
    rowsPerChunk = (rows + std::max<int64_t>(1, wanted) - 1) / std::max<int64_t>(1, wanted);
    rowsPerChunk = std::max<int64_t>(1, (rowsPerChunk + block - 1) / block * block);
    chunks = std::max<int64_t>(1, (rows + rowsPerChunk - 1) / rowsPerChunk);
  }

  /// How many short rows make a wide one: about groupWidth, whole vectors if possible. 1 where rows are long or few.
  static int64_t group(int64_t rows, int64_t columns) {
    constexpr int64_t lanes = 16;
    if (columns < 1 || columns > groupWidth / 2 || rows < 2)
      return 1;
    const int64_t most = std::min(rows, groupWidth / columns);
    for (int64_t count = most; count > most / 2; --count)
      if (count * columns % lanes == 0)
        return count;
    return most;
  }

  int64_t tasks() const { return tiles * chunks; }

  struct Task {
    int64_t chunk, rowBegin, rowEnd, columnBegin, width;
  };
  Task task(int64_t index) const {
    const int64_t chunk = index / tiles, column = index % tiles * tileWidth;
    return {chunk, chunk * rowsPerChunk, std::min(rows, (chunk + 1) * rowsPerChunk), column,
            std::min(tileWidth, columns - column)};
  }

  int64_t rows = 0, columns = 0, tiles = 1, chunks = 1, rowsPerChunk = 1;
};

} // namespace sluice
