// SPDX-License-Identifier: Apache-2.0
// Checks of shapes against windows.
#include "runtime/kernels/Windows.h"

namespace sluice {

void checkPool(const char *node, const Shape &x, const Shape &y, const Window &window) {
  if ((x.rank != 4 && x.rank != 5) || x.rank != y.rank || x[0] != y[0] || x[1] != y[1])
    throw std::invalid_argument(std::string("pooling '") + node +
                                "': input and output need rank 4 or 5 and equal batch and channels, got " +
                                std::to_string(x[0]) + "x" + std::to_string(x[1]) + " and " + std::to_string(y[0]) +
                                "x" + std::to_string(y[1]));
  for (int i = 0; i < x.rank - 2; ++i)
    if (window.kernel[i] < 1 || window.strides[i] < 1 || window.dilations[i] < 1)
      throw std::invalid_argument(std::string("pooling '") + node + "': kernel " + std::to_string(window.kernel[i]) +
                                  ", stride " + std::to_string(window.strides[i]) + ", dilation " +
                                  std::to_string(window.dilations[i]) + " must be positive");
}

void checkConvolution(const char *node, const Shape &x, const Shape &w, const Shape &y, const Window &window,
                      int64_t groups) {
  auto reject = [&](const std::string &what) {
    throw std::invalid_argument(std::string("convolution '") + node + "': " + what);
  };
  if ((x.rank != 4 && x.rank != 5) || w.rank != x.rank || y.rank != x.rank)
    reject("ranks " + std::to_string(x.rank) + ", " + std::to_string(w.rank) + ", " + std::to_string(y.rank) +
           ", expected 4 or 5 of all");
  if (groups < 1 || x[1] != w[1] * groups || y[1] != w[0] || w[0] % groups || x[0] != y[0])
    reject("input channels " + std::to_string(x[1]) + ", output channels " + std::to_string(y[1]) + " and weights " +
           std::to_string(w[0]) + "x" + std::to_string(w[1]) + " do not fit " + std::to_string(groups) + " groups");
  const int spatial = x.rank - 2;
  for (int i = 0; i < spatial; ++i) {
    const int64_t reach = window.dilations[i] * (w[2 + i] - 1) + 1;
    const int64_t expected = (x[2 + i] + window.pads[i] + window.pads[spatial + i] - reach) / window.strides[i] + 1;
    if (window.kernel[i] != w[2 + i] || y[2 + i] != expected)
      reject("output extent " + std::to_string(y[2 + i]) + ", expected " + std::to_string(expected));
  }
}

} // namespace sluice
