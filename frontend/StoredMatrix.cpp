// SPDX-License-Identifier: Apache-2.0
// Signed codes of a file are 2^(bits-1) higher in a form, and so are their zero points.
#include "frontend/StoredMatrix.h"

#include "runtime/kernels/QuantizationRules.h"

#include <cmath>
#include <cstring>

namespace sluice {

float PackedNumbers::at(int64_t row, int64_t column) const {
  const int64_t i = row * rowStep + column * columnStep;
  if (bits == 32) {
    float number;
    std::memcpy(&number, bytes.data() + i * static_cast<int64_t>(sizeof number), sizeof number);
    return number;
  }
  const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(bits == 4 ? i / 2 : i)]);
  const int number = bits == 8 ? byte : i % 2 ? byte >> 4 : byte & 15, half = 1 << (bits - 1);
  return static_cast<float>(isSigned && number >= half ? number - 2 * half : number);
}

bool PackedNumbers::hold(int64_t rows, int64_t columns) const {
  int64_t last = 0, across = 0, needed = 0;
  if (__builtin_mul_overflow(rows - 1, rowStep, &last) || __builtin_mul_overflow(columns - 1, columnStep, &across) ||
      __builtin_add_overflow(last, across, &last) || __builtin_mul_overflow(last + 1, int64_t{bits}, &needed))
    return false;
  return needed <= static_cast<int64_t>(bytes.size()) * 8;
}

float StoredMatrix::zeroOf(int64_t row, int64_t column) const {
  const bool shifted = codes.isSigned && (!zeros || zeros->bits != 32);
  return (zeros ? zeros->at(row, column) : zero) + static_cast<float>(shifted ? 1 << (form.bits - 1) : 0);
}

std::optional<std::string> StoredMatrix::check() {
  const int64_t rows = form.scaleRows(), columns = form.scaleColumns();
  if (!codes.hold(form.rows, form.columns) || !scales.hold(rows, columns) || (zeros && !zeros->hold(rows, columns)))
    return "its weights, scales or zero points have fewer numbers than its shapes say";
  form.coding = Coding::Symmetric;
  const float middle = static_cast<float>(1 << (form.bits - 1));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const float scale = scales.at(r, c), zero = zeroOf(r, c);
      if (!std::isfinite(scale) || !std::isfinite(zero))
        return "the scale or zero point of group [" + std::to_string(r) + ", " + std::to_string(c) + "] is not finite";
      if (zero != middle)
        form.coding = Coding::Asymmetric;
    }
  return std::nullopt;
}

std::string StoredMatrix::bytes() const {
  std::string bytes(static_cast<size_t>(form.bytes()), '\0');
  float *to = reinterpret_cast<float *>(bytes.data());
  const int64_t rows = form.scaleRows(), columns = form.scaleColumns();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c, ++to) {
      *to = scales.at(r, c);
      if (form.coding == Coding::Asymmetric)
        to[form.scales()] = zeroOf(r, c);
    }
  const int shift = codes.isSigned ? 1 << (form.bits - 1) : 0;
  for (int64_t r = 0; r < form.rows; ++r)
    for (int64_t c = 0; c < form.columns; ++c)
      putCode(form, bytes.data(), r, c, static_cast<int>(codes.at(r, c)) + shift);
  return bytes;
}

} // namespace sluice
