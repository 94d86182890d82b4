// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests, and their definition: strides, dilations, asymmetric pads, groups, depthwise, channels that
// fill no vector.
#pragma once

#include "test/unit/runtime/Harness.h"

namespace sluice {

struct ConvCase {
  const char *name;
  Shape x, w;
  int64_t strides[2], pads[4], dilations[2], groups;
  bool bias;
};

inline std::ostream &operator<<(std::ostream &out, const ConvCase &c) { return out << c.name; }

inline Window windowOf(const ConvCase &c) {
  return {{c.w[2], c.w[3]},
          {c.strides[0], c.strides[1]},
          {c.pads[0], c.pads[1], c.pads[2], c.pads[3]},
          {c.dilations[0], c.dilations[1]}};
}

inline Shape outputOf(const ConvCase &c) {
  Shape y{c.x[0], c.w[0], 0, 0};
  for (int i = 0; i < 2; ++i)
    y.dims[2 + i] = (c.x[2 + i] + c.pads[i] + c.pads[2 + i] - c.dilations[i] * (c.w[2 + i] - 1) - 1) / c.strides[i] + 1;
  return y;
}

/// Calls visit(index of y, index of x, index of w) for every product of the convolution.
template <typename Visit> void forProducts(const ConvCase &c, Visit &&visit) {
  const Shape y = outputOf(c);
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t oy = 0; oy < y[2]; ++oy)
        for (int64_t ox = 0; ox < y[3]; ++ox)
          for (int64_t i = 0; i < c.w[1]; ++i)
            for (int64_t ky = 0; ky < c.w[2]; ++ky)
              for (int64_t kx = 0; kx < c.w[3]; ++kx) {
                const int64_t iy = oy * c.strides[0] - c.pads[0] + ky * c.dilations[0];
                const int64_t ix = ox * c.strides[1] - c.pads[1] + kx * c.dilations[1];
                if (iy < 0 || iy >= c.x[2] || ix < 0 || ix >= c.x[3])
                  continue;
                const int64_t channel = o / (c.w[0] / c.groups) * c.w[1] + i;
                visit(static_cast<size_t>(((n * y[1] + o) * y[2] + oy) * y[3] + ox),
                      static_cast<size_t>(((n * c.x[1] + channel) * c.x[2] + iy) * c.x[3] + ix),
                      static_cast<size_t>(((o * c.w[1] + i) * c.w[2] + ky) * c.w[3] + kx));
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
      {"rectangular", {1, 10, 5, 9}, {9, 10, 1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, 1, false},
      {"one_pixel", {1, 17, 1, 1}, {33, 17, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, true},
      {"rotated", {1, 256, 19, 21}, {24, 256, 3, 2}, {1, 1}, {1, 0, 2, 1}, {1, 1}, 1, false},
      {"turned_dilated", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 2}, {2, 1}, 1, false},
      {"windows_in_padding", {1, 260, 18, 20}, {9, 260, 3, 3}, {1, 1}, {2, 1, 0, 3}, {2, 1}, 1, false},
      {"batch_one_wide", {1, 48, 20, 20}, {80, 48, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, false}};
  return cases;
}

} // namespace sluice
