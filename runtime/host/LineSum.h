// SPDX-License-Identifier: Apache-2.0
// Sums along one line of a tensor, for kernels that normalize lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace sluice {

/// Sum of value(i), floats or doubles, over a line, in an order that depends on the length alone: lanes, so that loops
/// vectorize, of doubles that take in eight values at a time.
template <typename Value> double lineSum(int64_t length, Value &&value) {
  constexpr int64_t lanes = 32, terms = 8;
  double sums[lanes] = {};
  int64_t begin = 0;
  while (length - begin >= lanes) {
    const int64_t end = begin + std::min(terms, (length - begin) / lanes) * lanes;
    std::decay_t<decltype(value(length))> parts[lanes];
    for (int64_t i = 0; i < lanes; ++i)
      parts[i] = value(begin + i);
    for (int64_t at = begin + lanes; at < end; at += lanes)
      for (int64_t i = 0; i < lanes; ++i)
        parts[i] += value(at + i);
    for (int64_t i = 0; i < lanes; ++i)
      sums[i] += static_cast<double>(parts[i]);
    begin = end;
  }
  for (int64_t i = 0; begin + i < length; ++i)
    sums[i] += static_cast<double>(value(begin + i));
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      sums[i] += sums[i + half];
  return sums[0];
}

} // namespace sluice
