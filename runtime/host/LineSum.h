// SPDX-License-Identifier: Apache-2.0
// Sums along one line of a tensor, for kernels that normalize lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace sluice {

/// Sum of value(i), floats or doubles, over a line, in an order that depends on the length alone. Lanes of sums, in
/// loops of a known length, vectorize.
template <typename Value> double lineSum(int64_t length, Value &&value) {
  constexpr int64_t lanes = 32;
  std::decay_t<decltype(value(length))> values[lanes];
  double sums[lanes] = {};
  for (int64_t begin = 0; begin < length; begin += lanes) {
    const int64_t count = std::min(lanes, length - begin);
    if (count == lanes) { // its length is known, so that vectors stay in registers
      for (int64_t i = 0; i < lanes; ++i)
        values[i] = value(begin + i);
      for (int64_t i = 0; i < lanes; ++i)
        sums[i] += static_cast<double>(values[i]);
    } else {
      for (int64_t i = 0; i < count; ++i)
        sums[i] += static_cast<double>(value(begin + i));
    }
  }
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      sums[i] += sums[i + half];
  return sums[0];
}

} // namespace sluice
