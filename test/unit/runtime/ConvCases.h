// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests, and their definition: strides, dilations, asymmetric pads, groups, depthwise, channels that
// fill no vector; volumes as well as images.
#pragma once

#include "runtime/kernels/Windows.h"
#include "test/unit/runtime/Harness.h"

namespace sluice {

struct ConvCase {
  const char *name;
  Shape x, w;
  int64_t strides[3], pads[6], dilations[3], groups;
  bool bias;
};

inline std::ostream &operator<<(std::ostream &out, const ConvCase &c) { return out << c.name; }

inline Window windowOf(const ConvCase &c) {
  Window window{};
  std::copy_n(c.w.dims + 2, 3, window.kernel);
  std::copy_n(c.strides, 3, window.strides);
  std::copy_n(c.pads, 6, window.pads);
  std::copy_n(c.dilations, 3, window.dilations);
  return window;
}

inline Shape outputOf(const ConvCase &c) {
  Shape y{c.x[0], c.w[0]};
  for (int i = 0, spatial = c.x.rank - 2; i < spatial; ++i)
    y.append((c.x[2 + i] + c.pads[i] + c.pads[spatial + i] - c.dilations[i] * (c.w[2 + i] - 1) - 1) / c.strides[i] + 1);
  return y;
}

/// Calls visit(index of y, index of x, index of w) for every product of the convolution.
template <typename Visit> void forProducts(const ConvCase &c, Visit &&visit) {
  const Shape x = asVolume(c.x), w = asVolume(c.w), y = asVolume(outputOf(c));
  const Window window = asVolume(windowOf(c), c.x.rank);
  /// Row-major index of a place in a plane of a tensor.
  auto index = [](const Shape &shape, int64_t plane, const int64_t (&at)[3]) {
    return ((plane * shape[2] + at[0]) * shape[3] + at[1]) * shape[4] + at[2];
  };
  const int64_t results = y[2] * y[3] * y[4], taps = w[2] * w[3] * w[4];
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t result = 0; result < results; ++result)
        for (int64_t i = 0; i < w[1]; ++i)
          for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t to[3] = {result / y[4] / y[3], result / y[4] % y[3], result % y[4]};
            const int64_t k[3] = {tap / w[4] / w[3], tap / w[4] % w[3], tap % w[4]};
            int64_t from[3];
            bool inside = true;
            for (int a = 0; a < 3; ++a) {
              from[a] = to[a] * window.strides[a] - window.pads[a] + k[a] * window.dilations[a];
              inside &= from[a] >= 0 && from[a] < x[2 + a];
            }
            const int64_t channel = o / (w[0] / c.groups) * w[1] + i;
            if (inside)
              visit(static_cast<size_t>(index(y, n * y[1] + o, to)),
                    static_cast<size_t>(index(x, n * x[1] + channel, from)),
                    static_cast<size_t>(index(w, o * w[1] + i, k)));
          }
}

inline const std::vector<ConvCase> &convCases() {
  static const std::vector<ConvCase> cases = {
      {"pointwise", {2, 16, 9, 7}, {32, 16, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false},
      {"square", {2, 16, 14, 14}, {16, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false},
      {"strided_bias", {2, 8, 15, 11}, {12, 8, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, true},
      {"stem", {2, 3, 32, 32}, {16, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1, false},
      {"odd_channels", {1, 5, 9, 8}, {7, 5, 3, 2}, {1, 2}, {1, 0, 2, 1}, {1, 1}, 1, true},
      {"asymmetric_pads", {3, 4, 10, 10}, {6, 4, 3, 3}, {2, 2}, {0, 0, 1, 1}, {1, 1}, 1, false},
      {"dilated", {2, 6, 13, 12}, {10, 6, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1, true},
      {"dilated_strided", {2, 6, 13, 12}, {10, 6, 3, 3}, {2, 1}, {2, 3, 2, 3}, {2, 3}, 1, false},
      {"grouped", {2, 12, 8, 8}, {18, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3, true},
      {"grouped_aligned", {2, 64, 8, 8}, {64, 16, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4, false},
      {"depthwise", {2, 24, 11, 11}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24, false},
      {"depthwise_strided", {2, 32, 12, 12}, {32, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 32, true},
      {"depthwise_multiplier", {1, 6, 7, 7}, {12, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 6, true},
      {"pointwise_strided", {2, 24, 9, 8}, {16, 24, 1, 1}, {2, 3}, {0, 1, 0, 0}, {1, 1}, 1, true},
      {"depthwise_sparse", {1, 24, 13, 11}, {24, 1, 2, 2}, {5, 4}, {1, 0, 0, 1}, {1, 1}, 24, false},
      {"rectangular", {1, 10, 5, 9}, {9, 10, 1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, 1, false},
      {"one_pixel", {1, 17, 1, 1}, {33, 17, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, true},
      {"rotated", {1, 256, 19, 21}, {24, 256, 3, 2}, {1, 1}, {1, 0, 2, 1}, {1, 1}, 1, false},
      {"turned_dilated", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 2}, {2, 1}, 1, false},
      {"windows_in_padding", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 3}, {2, 1}, 1, false},
      {"volume", {2, 8, 5, 7, 6}, {12, 8, 3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1, true},
      {"volume_stem", {2, 3, 6, 12, 12}, {16, 3, 3, 7, 7}, {1, 2, 2}, {1, 3, 3, 1, 3, 3}, {1, 1, 1}, 1, false},
      {"volume_strided", {1, 16, 7, 8, 9}, {16, 16, 3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1, false},
      {"volume_dilated", {2, 6, 8, 9, 7}, {10, 6, 2, 3, 2}, {2, 1, 3}, {1, 2, 0, 2, 1, 3}, {3, 2, 1}, 1, true},
      {"volume_in_time", {2, 10, 6, 4, 5}, {9, 10, 3, 1, 1}, {1, 1, 1}, {1, 0, 0, 1, 0, 0}, {1, 1, 1}, 1, false},
      {"pointwise_gathered", {2, 24, 9, 8}, {16, 24, 1, 1}, {2, 3}, {0, 0, 0, 0}, {1, 1}, 1, false},
      {"volume_pointwise", {2, 16, 3, 5, 4}, {32, 16, 1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 1, false},
      {"volume_gathered", {2, 16, 5, 6, 4}, {32, 16, 1, 1, 1}, {2, 3, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 1, false},
      {"volume_grouped", {1, 12, 5, 4, 6}, {18, 4, 3, 3, 1}, {1, 2, 1}, {1, 1, 0, 1, 1, 0}, {1, 1, 1}, 3, true},
      {"volume_depthwise", {2, 24, 4, 5, 6}, {24, 1, 3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 24, true},
      {"volume_aligned", {1, 64, 4, 6, 6}, {64, 64, 3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1, false},
      {"batch_one_wide", {1, 48, 20, 20}, {80, 48, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false}};
  return cases;
}

} // namespace sluice
