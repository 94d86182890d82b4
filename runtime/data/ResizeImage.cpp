// SPDX-License-Identifier: Apache-2.0
// Pillow's resampling (src/libImaging/Resample.c): rows first, then columns, with weights in fixed point and bytes in
// between. A triangle as wide as two pixels of the smaller image weighs those of the larger one.

#include "runtime/data/Image.h"

#include <algorithm>
#include <cmath>

namespace sluice {

namespace {

constexpr int precision = 32 - 8 - 2; ///< bits of a weight; sums of bytes stay below 2^31

/// Which inputs one direction's outputs are sums of.
struct Weights {
  Weights(int inputs, int outputs);

  std::vector<int> first, count; ///< of each output
  std::vector<int> weights;      ///< `taps` for each output
  int taps;
};

Weights::Weights(int inputs, int outputs) : first(static_cast<size_t>(outputs)), count(static_cast<size_t>(outputs)) {
  const double scale = static_cast<double>(inputs) / outputs, wide = std::max(1.0, scale);
  taps = static_cast<int>(std::ceil(wide)) * 2 + 1;
  weights.resize(static_cast<size_t>(outputs) * static_cast<size_t>(taps));
  std::vector<double> exact(static_cast<size_t>(taps));
  for (int i = 0; i < outputs; ++i) {
    const double center = (i + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(center - wide + 0.5));
    const int number = std::min(inputs, static_cast<int>(center + wide + 0.5)) - begin;
    double sum = 0;
    for (int k = 0; k < number; ++k)
      sum += exact[static_cast<size_t>(k)] = std::max(0.0, 1 - std::fabs((k + begin - center + 0.5) * (1.0 / wide)));
    int *to = weights.data() + static_cast<size_t>(i) * static_cast<size_t>(taps);
    for (int k = 0; k < number; ++k)
      to[k] = static_cast<int>(0.5 + exact[static_cast<size_t>(k)] / (sum != 0 ? sum : 1) * (1 << precision));
    first[static_cast<size_t>(i)] = begin;
    count[static_cast<size_t>(i)] = number;
  }
}

uint8_t rounded(int sum) { return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255)); }

template <int channels> void resizeRow(const uint8_t *from, const Weights &along, uint8_t *to) {
  for (size_t x = 0; x < along.first.size(); ++x, to += channels) {
    const uint8_t *in = from + along.first[x] * channels;
    const int *weight = along.weights.data() + x * static_cast<size_t>(along.taps);
    int sums[channels];
    std::fill(sums, sums + channels, 1 << (precision - 1));
    for (int k = 0; k < along.count[x]; ++k, in += channels)
      for (int c = 0; c < channels; ++c)
        sums[c] += in[c] * weight[k];
    for (int c = 0; c < channels; ++c)
      to[c] = rounded(sums[c]);
  }
}

} // namespace

Image resize(const Image &image, Box box, int width, int height) {
  const Image *from = &image;
  Image rows;
  if (width != box.width) {
    const Weights across(box.width, width);
    rows = Image(width, box.height, image.channels);
    const auto resizeOne = image.channels == 1 ? resizeRow<1> : image.channels == 3 ? resizeRow<3> : resizeRow<4>;
    for (int y = 0; y < box.height; ++y)
      resizeOne(image.row(box.top + y) + box.left * image.channels, across, rows.row(y));
    from = &rows;
    box.left = box.top = 0;
    box.width = width;
  }
  if (height == box.height)
    return from == &rows ? rows : crop(image, box);
  const Weights down(box.height, height);
  Image out(width, height, image.channels);
  const size_t bytes = out.rowBytes(), left = static_cast<size_t>(box.left * image.channels);
  std::vector<int> sums(bytes);
  for (int y = 0; y < height; ++y) {
    const auto at = static_cast<size_t>(y);
    std::fill(sums.begin(), sums.end(), 1 << (precision - 1));
    for (int k = 0; k < down.count[at]; ++k) {
      const uint8_t *in = from->row(box.top + down.first[at] + k) + left;
      const int weight = down.weights[at * static_cast<size_t>(down.taps) + static_cast<size_t>(k)];
      for (size_t i = 0; i < bytes; ++i)
        sums[i] += in[i] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.row(y), rounded);
  }
  return out;
}

} // namespace sluice
