// SPDX-License-Identifier: Apache-2.0
// Layer normalization of row-major rows. A row is read again while it lies in the cache; its sums are taken in double,
// in an order that depends on its length alone.
#include "runtime/Kernels.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/LineSum.h"
#include "runtime/host/Parallel.h"

#include <cmath>

namespace sluice {

LayerNorm::LayerNorm(Node node, Shape x, float epsilon) : Kernel(node), rows(x[0]), columns(x[1]), epsilon(epsilon) {}

/// Calls body(row) for all rows, as many to a task as make the two atomics around it cheap.
template <typename Body> static void forRows(int64_t rows, int64_t columns, Body &&body) {
  parallelRanges(rows, std::max<int64_t>(1, 65536 / columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      body(row);
  });
}

void LayerNorm::forward(Stream &stream, const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &y,
                        const Tensor &mean, const Tensor &rstd) const {
  const float *pScale = stream.data<float>(scale), *pBias = stream.data<float>(bias);
  float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  forStored(node, x.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *px = stream.data<T>(x);
    T *py = stream.data<T>(y);
    stream.launch(node, "layer_norm", [this, px, pScale, pBias, py, pMean, pRstd] {
      forRows(rows, columns, [&](int64_t row) {
        const T *line = px + row * columns;
        T *to = py + row * columns;
        const auto from = [line](int64_t i) { return widened(line[i]); };
        const auto count = static_cast<double>(columns);
        const auto middle = static_cast<float>(lineSum(columns, from) / count);
        const double squares = lineSum(columns, [&](int64_t i) { return (from(i) - middle) * (from(i) - middle); });
        const auto factor = static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(epsilon)));
        pMean[row] = middle;
        pRstd[row] = factor;
#pragma GCC ivdep
        for (int64_t i = 0; i < columns; ++i)
          store(to + i, (from(i) - middle) * factor * pScale[i] + pBias[i]);
      });
    });
  });
}

void LayerNorm::backward(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &scale, const Tensor &mean,
                         const Tensor &rstd, const Tensor &dx) const {
  const float *pScale = stream.data<float>(scale);
  const float *pMean = stream.data<float>(mean), *pRstd = stream.data<float>(rstd);
  forStored(node, x.type, [&](auto *type) {
    using T = Stored<decltype(type)>;
    const T *pdy = stream.data<T>(dy), *px = stream.data<T>(x);
    T *pdx = stream.data<T>(dx);
    stream.launch(node, "layer_norm_backward", [this, pdy, px, pScale, pMean, pRstd, pdx] {
      forRows(rows, columns, [&](int64_t row) {
        const T *from = px + row * columns, *gradient = pdy + row * columns;
        const float middle = pMean[row], factor = pRstd[row];
        T *to = pdx + row * columns;
        auto scaled = [&](int64_t i) { return widened(gradient[i]) * pScale[i]; };
        auto normal = [&](int64_t i) { return (widened(from[i]) - middle) * factor; };
        const auto count = static_cast<double>(columns);
        const auto shift = static_cast<float>(lineSum(columns, scaled) / count);
        const auto slope =
            static_cast<float>(lineSum(columns, [&](int64_t i) { return scaled(i) * normal(i); }) / count);
#pragma GCC ivdep
        for (int64_t i = 0; i < columns; ++i)
          store(to + i, factor * (scaled(i) - shift - normal(i) * slope));
      });
    });
  });
}

} // namespace sluice
