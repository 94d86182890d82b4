// SPDX-License-Identifier: Apache-2.0
// Digits are three pixels wide and five high, doubled, so that no library for text is needed.

#include "runtime/program/ConfusionImage.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace sluice {

namespace {

using Colour = std::array<uint8_t, 3>;
constexpr Colour paper = {255, 255, 255}, full = {8, 48, 107}, ink = {34, 34, 34}, line = {221, 221, 221};

/// Rows of three bits from the top, of 0 to 9.
constexpr uint8_t digits[10][5] = {{7, 5, 5, 5, 7}, {2, 6, 2, 2, 7}, {7, 1, 7, 4, 7}, {7, 1, 7, 1, 7}, {5, 5, 7, 1, 1},
                                   {7, 4, 7, 1, 7}, {7, 4, 7, 5, 7}, {7, 1, 1, 1, 1}, {7, 5, 7, 5, 7}, {7, 5, 7, 1, 7}};
constexpr int dot = 2, digitWidth = 4 * dot, digitHeight = 5 * dot;

void fill(Image &image, Box box, const Colour &colour) {
  for (int y = box.top; y < box.top + box.height; ++y)
    for (int x = box.left; x < box.left + box.width; ++x)
      std::copy(colour.begin(), colour.end(), image.row(y) + 3 * x);
}

/// A whole number in the middle of a box.
void write(Image &image, Box box, int64_t number, const Colour &colour) {
  const std::string words = std::to_string(number);
  int left = box.left + (box.width - static_cast<int>(words.size()) * digitWidth + dot) / 2;
  const int top = box.top + (box.height - digitHeight) / 2;
  for (const char digit : words) {
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 3; ++x)
        if (digits[digit - '0'][y] >> (2 - x) & 1)
          fill(image, {left + x * dot, top + y * dot, dot, dot}, colour);
    left += digitWidth;
  }
}

Colour between(double share) {
  Colour colour;
  for (size_t i = 0; i < 3; ++i)
    colour[i] = static_cast<uint8_t>(std::lround(paper[i] + share * (full[i] - paper[i])));
  return colour;
}

} // namespace

Image confusionImage(const Confusion &counts) {
  constexpr int mostWritten = 40, room = 30;
  const auto classes = static_cast<int>(counts.size());
  const bool written = classes <= mostWritten;
  const int cell = written ? room : std::clamp(1024 / classes, 1, room), margin = written ? room : 0;
  Image image(margin + classes * cell, margin + classes * cell, 3);
  fill(image, {0, 0, image.width, image.height}, paper);
  for (int row = 0; row < classes; ++row) {
    const std::vector<int64_t> &answers = counts[static_cast<size_t>(row)];
    const auto all =
        static_cast<double>(std::max<int64_t>(1, std::accumulate(answers.begin(), answers.end(), int64_t{0})));
    for (int column = 0; column < classes; ++column) {
      const double share = static_cast<double>(answers[static_cast<size_t>(column)]) / all;
      const Box whole = {margin + column * cell, margin + row * cell, cell, cell};
      if (written)
        fill(image, whole, line);
      const Box inner = written ? Box{whole.left, whole.top, cell - 1, cell - 1} : whole;
      fill(image, inner, between(share));
      if (written && share > 0)
        write(image, inner, std::lround(100 * share), share > 0.5 ? paper : ink);
    }
    if (written) {
      write(image, {0, margin + row * cell, margin, cell}, row, ink);
      write(image, {margin + row * cell, 0, cell, margin}, row, ink);
    }
  }
  return image;
}

std::string confusionCaption(const Confusion &counts, const std::vector<std::string> &names) {
  std::string caption = "rows: what is right, columns: what was answered, in percent of the row";
  if (names.size() == counts.size())
    for (size_t i = 0; i < names.size() && i < 40; ++i)
      caption += text(i ? ", " : "; ", i, " ", printable(names[i]));
  return caption;
}

} // namespace sluice
