// SPDX-License-Identifier: Apache-2.0
// Which of two elements of a row is the better one, for both targets.
#pragma once

#include "runtime/Random.h"

#include <cstdint>

namespace sluice {

/// An order of a row's positions, the best one first.
struct Better {
  const float *row;
  bool smallest, last;

  SLUICE_KERNEL static bool isLarger(float a, float b) { return a > b || (a != a && b == b); }
  SLUICE_KERNEL bool operator()(int64_t i, int64_t j) const {
    const bool above = isLarger(row[i], row[j]), below = isLarger(row[j], row[i]);
    return above || below ? above != smallest : last ? i > j : i < j;
  }
};

} // namespace sluice
