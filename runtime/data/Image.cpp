// SPDX-License-Identifier: Apache-2.0
// Changes of pixels. Blends are those of Pillow's ImageEnhance: from + factor * (pixel - from), cut off after the
// point.

#include "runtime/data/Image.h"

#include <algorithm>
#include <cstring>

namespace sluice {

static uint8_t luma(const uint8_t *rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

Image toGrey(const Image &colours) {
  Image grey(colours.width, colours.height, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i)
    grey.pixels[i] = luma(colours.pixels.data() + 3 * i);
  return grey;
}

Image toColours(const Image &grey) {
  Image colours(grey.width, grey.height, 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i)
    std::memset(colours.pixels.data() + 3 * i, grey.pixels[i], 3);
  return colours;
}

Image fromPlanes(const uint8_t *planes, int width, int height, int channels) {
  Image image(width, height, channels);
  const size_t pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
  const auto step = static_cast<size_t>(channels);
  for (size_t c = 0; c < step; ++c)
    for (size_t i = 0; i < pixels; ++i)
      image.pixels[i * step + c] = planes[c * pixels + i];
  return image;
}

Image crop(const Image &image, Box box) {
  Image out(box.width, box.height, image.channels);
  const int first = std::max(0, -box.left), last = std::min(box.width, image.width - box.left);
  const auto channels = static_cast<size_t>(image.channels);
  for (int y = std::max(0, -box.top); y < std::min(box.height, image.height - box.top) && first < last; ++y)
    std::memcpy(out.row(y) + static_cast<size_t>(first) * channels,
                image.row(box.top + y) + static_cast<size_t>(box.left + first) * channels,
                static_cast<size_t>(last - first) * channels);
  return out;
}

void flip(Image &image) {
  const int channels = image.channels;
  for (int y = 0; y < image.height; ++y) {
    uint8_t *row = image.row(y);
    for (int left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

static uint8_t blend(int from, int pixel, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(pixel - from);
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

/// Every byte as it becomes when it is blended with one that is the same for all.
static void blendWith(Image &image, int from, float factor) {
  uint8_t table[256];
  for (int value = 0; value < 256; ++value)
    table[value] = blend(from, value, factor);
  for (uint8_t &byte : image.pixels)
    byte = table[byte];
}

void adjustBrightness(Image &image, float factor) { blendWith(image, 0, factor); }

/// From the mean of its luma, rounded.
void adjustContrast(Image &image, float factor) {
  const auto step = static_cast<size_t>(image.channels);
  const size_t pixels = image.pixels.size() / step;
  uint64_t sum = 0;
  for (size_t i = 0; i < pixels; ++i)
    sum += step == 3 ? luma(image.pixels.data() + 3 * i) : image.pixels[i];
  blendWith(image, static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5), factor);
}

void adjustSaturation(Image &image, float factor) {
  if (image.channels != 3)
    return;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const uint8_t grey = luma(image.pixels.data() + i);
    for (size_t c = i; c < i + 3; ++c)
      image.pixels[c] = blend(grey, image.pixels[c], factor);
  }
}

} // namespace sluice
