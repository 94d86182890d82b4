// SPDX-License-Identifier: Apache-2.0
// Index arithmetic that kernels of both targets share: what a gather reads is what the scatter of the other direction
// writes.
#include "runtime/kernels/ResizeTaps.h"
#include "runtime/kernels/Windows.h"

#include <gtest/gtest.h>
#include <vector>

namespace sluice {
namespace {

/// The weight of every (input, output) pair, by walking outputs.
std::vector<float> scattered(const ResizeAxis &axis) {
  std::vector<float> weights(static_cast<size_t>(axis.in * axis.out));
  for (int64_t o = 0; o < axis.out; ++o) {
    const ResizeTap tap = resizeTap(axis, o);
    weights[static_cast<size_t>(tap.low * axis.out + o)] += 1 - tap.weight;
    if (tap.weight > 0)
      weights[static_cast<size_t>((tap.low + 1) * axis.out + o)] += tap.weight;
  }
  return weights;
}

/// The same by walking inputs, each with the outputs that firstOutputAt() names.
std::vector<float> gathered(const ResizeAxis &axis) {
  std::vector<float> weights(static_cast<size_t>(axis.in * axis.out));
  for (int64_t i = 0; i < axis.in; ++i)
    for (int64_t o = firstOutputAt(axis, i - 1); o < firstOutputAt(axis, i + 1); ++o)
      weights[static_cast<size_t>(i * axis.out + o)] += resizeWeight(resizeTap(axis, o), i);
  return weights;
}

TEST(ResizeTaps, GatherReadsWhatScatterWrites) {
  for (auto [in, out] : {std::pair<int64_t, int64_t>{4, 8}, {8, 4}, {5, 7}, {7, 5}, {1, 6}, {6, 1}, {3, 3}, {2, 31}})
    for (ResizeMode mode : {ResizeMode::Nearest, ResizeMode::Linear})
      for (auto coordinates : {ResizeCoordinates::HalfPixel, ResizeCoordinates::PytorchHalfPixel,
                               ResizeCoordinates::AlignCorners, ResizeCoordinates::Asymmetric})
        for (auto rounding : {NearestRounding::RoundPreferFloor, NearestRounding::RoundPreferCeil,
                              NearestRounding::Floor, NearestRounding::Ceil}) {
          const double scale = static_cast<double>(out) / static_cast<double>(in);
          const ResizeAxis axis{in, out, scale, mode, coordinates, rounding};
          EXPECT_EQ(gathered(axis), scattered(axis)) << in << " to " << out;
        }
}

TEST(Windows, TapsOfAPositionAreThePositionsOfItsTaps) {
  for (int64_t kernel : {1, 2, 3, 5})
    for (int64_t stride : {1, 2, 3})
      for (int64_t dilation : {1, 2})
        for (int64_t pad : {0, 1, 2}) {
          const Window w{{kernel, 1}, {stride, 1}, {pad, 0, pad, 0}, {dilation, 1}};
          const int64_t extent = 11, windows = (extent + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
          std::vector<int64_t> hits(static_cast<size_t>(extent * windows), -1), found = hits;
          for (int64_t o = 0; o < windows; ++o)
            for (int64_t k = 0; k < kernel; ++k)
              if (int64_t at = tapPosition(w, 0, o, k); at >= 0 && at < extent)
                hits[static_cast<size_t>(at * windows + o)] = k;
          for (int64_t at = 0; at < extent; ++at) {
            const Windows range = windowsAt(w, 0, at, windows);
            for (int64_t o = range.first; o <= range.last; ++o)
              found[static_cast<size_t>(at * windows + o)] = tapOf(w, 0, at, o);
          }
          EXPECT_EQ(found, hits) << kernel << " " << stride << " " << dilation << " " << pad;
        }
}

} // namespace
} // namespace sluice
