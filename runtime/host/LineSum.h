// SPDX-License-Identifier: Apache-2.0
// Sums along one line of a tensor, for kernels that normalize lines.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

/// Sum of value(i) over a line, in an order that depends on the length alone. Values of a block come first, in a loop
/// of their own, so that it vectorizes.
template <typename Value> double lineSum(int64_t length, Value &&value) {
  constexpr int64_t block = 256;
  float values[block];
  double sums[block];
  std::fill_n(sums, std::min(block, length), 0.0);
  for (int64_t begin = 0; begin < length; begin += block) {
    const int64_t count = std::min(block, length - begin);
    for (int64_t i = 0; i < count; ++i)
      values[i] = value(begin + i);
    for (int64_t i = 0; i < count; ++i)
      sums[i] += static_cast<double>(values[i]);
  }
  double total = 0;
  for (int64_t i = 0; i < std::min(block, length); ++i)
    total += sums[i];
  return total;
}

} // namespace sluice
