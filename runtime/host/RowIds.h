// SPDX-License-Identifier: Apache-2.0
// What the host's kernels that take rows by ids do alike.
#pragma once

#include "runtime/kernels/WrongId.h"

#include <algorithm>
#include <cstdint>

namespace sluice {

/// Throws DataError for the first id that names no row.
inline void checkIds(const char *node, const int64_t *ids, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= rows)
      throw wrongId(IdUse::Row, node, ids[i], i, rows);
}

/// Rows, or ids, of about 32 KiB together.
inline int64_t grainOf(int64_t columns) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, columns)); }

} // namespace sluice
