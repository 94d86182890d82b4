// SPDX-License-Identifier: Apache-2.0
// Pillow's Image.rotate with BILINEAR (src/libImaging/Geometry.c): where each pixel's middle comes from, and the four
// pixels around that.

#include "runtime/data/Image.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace sluice {

/// By their series, |x| <= 5: the same bits on every machine.
static std::pair<double, double> sineAndCosine(double x) {
  double sine = 1, cosine = 1;
  for (int k = 40; k > 0; k -= 2) {
    sine = 1 - x * x / (k * (k + 1)) * sine;
    cosine = 1 - x * x / (k * (k - 1)) * cosine;
  }
  return {x * sine, cosine};
}

Turn::Turn(int width, int height, double degrees) : middleX(width / 2.0), middleY(height / 2.0) {
  constexpr double pi = 3.14159265358979323846;
  std::tie(sine, cosine) = sineAndCosine(-degrees * pi / 180);
}

Image rotate(const Image &image, double degrees) {
  const Turn turn(image.width, image.height, degrees);
  Image out(image.width, image.height, image.channels);
  for (int y = 0; y < image.height; ++y) {
    uint8_t *to = out.row(y);
    for (int x = 0; x < image.width; ++x, to += image.channels) {
      const auto [fromX, fromY] = turn.from(x, y);
      if (!(fromX >= 0 && fromX < image.width && fromY >= 0 && fromY < image.height))
        continue; // black
      const int left = static_cast<int>(std::floor(fromX - 0.5)), top = static_cast<int>(std::floor(fromY - 0.5));
      const double across = fromX - 0.5 - left, along = fromY - 0.5 - top;
      const uint8_t *rows[] = {image.row(std::max(top, 0)), image.row(std::min(top + 1, image.height - 1))};
      const int columns[] = {std::max(left, 0) * image.channels, std::min(left + 1, image.width - 1) * image.channels};
      for (int c = 0; c < image.channels; ++c) {
        const auto line = [&](const uint8_t *row) {
          const double first = row[columns[0] + c], second = row[columns[1] + c];
          return first + (second - first) * across;
        };
        const double upper = line(rows[0]), lower = line(rows[1]);
        to[c] = static_cast<uint8_t>(upper + (lower - upper) * along);
      }
    }
  }
  return out;
}

} // namespace sluice
