// SPDX-License-Identifier: Apache-2.0
// See MatmulBias.h.
#include "runtime/host/MatmulBias.h"

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

#include <algorithm>

namespace sluice {

template <typename C, typename B> static void add(const MatmulShape &shape, const B *bias, C *c) {
  const int64_t columns = shape.n;
  parallelRanges(shape.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const B *from = bias + row % shape.biasRows * shape.biasRowStep;
                     C *to = c + row * columns;
                     for (int64_t i = 0; i < columns; ++i)
                       store(to + i, widened(to[i]) + shape.beta * widened(from[i * shape.biasColumnStep]));
                   }
                 });
}

void MatmulBias::begin(const void *bias, void *c) const {
  if (!shape.adds || bias == c)
    return;
  const auto *from = static_cast<const float *>(bias);
  auto *to = static_cast<float *>(c);
  parallelRanges(shape.rows * shape.n, 16384,
                 [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

// A row has the result's type, any other bias is of floats.
void MatmulBias::finish(const void *bias, void *c) const {
  if (!own)
    return;
  if (result == DataType::F32)
    add(shape, static_cast<const float *>(bias), static_cast<float *>(c));
  else if (shape.rowBias)
    add(shape, static_cast<const BFloat16 *>(bias), static_cast<BFloat16 *>(c));
  else
    add(shape, static_cast<const float *>(bias), static_cast<BFloat16 *>(c));
}

} // namespace sluice
