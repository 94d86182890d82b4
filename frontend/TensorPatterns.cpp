// SPDX-License-Identifier: Apache-2.0
// What the elements of a file's tensor look like, by their bytes: files may be larger than what a copy should take.
#include "frontend/HostTensor.h"
#include "frontend/TensorRoles.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {
namespace {

/// Whether the first `size` bytes, which are not all, repeat until the end.
bool repeats(std::string_view bytes, size_t size) {
  return size && size < bytes.size() && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

/// Whether every element is 0 or one other number, both occur, and that number is accepted.
template <typename Accept> bool isZeroOr(const FileTensor &tensor, const Accept &accept) {
  float other = 0;
  size_t zeros = 0;
  const size_t count = tensor.bytes.size() / sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
    zeros += value == 0;
    if (value == 0 || value == other)
      continue;
    if (other != 0 || !accept(value))
      return false;
    other = value;
  }
  return other != 0 && zeros > 0;
}

} // namespace

bool isUniform(const FileTensor &tensor) {
  const int64_t count = elementCount(tensor.shape).value_or(0);
  const size_t size = count > 0 ? tensor.bytes.size() / static_cast<size_t>(count) : 0;
  return size == tensor.bytes.size() ? size > 0 : repeats(tensor.bytes, size);
}

bool hasEqualRows(const FileTensor &tensor) {
  return !tensor.shape.empty() && tensor.shape[0] > 1 &&
         repeats(tensor.bytes, tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]));
}

bool isGate(const FileTensor &tensor) {
  return isZeroOr(tensor, [](float value) { return value == 1; });
}

bool hidesScores(const FileTensor &tensor) {
  constexpr float smallest = -100; // windows of Swin are hidden so
  return isZeroOr(tensor, [](float value) { return value <= smallest && std::isfinite(value); });
}

bool endsInZeros(const FileTensor &tensor) {
  if (tensor.shape.size() != 2 || tensor.shape[0] < 1 || tensor.shape[1] < 2 || tensor.shape[1] % 2 ||
      tensor.bytes.size() != elementCount(tensor.shape).value_or(0) * sizeof(float))
    return false;
  const size_t half = static_cast<size_t>(tensor.shape[1]) / 2 * sizeof(float);
  for (size_t at = half; at < tensor.bytes.size(); at += 2 * half)
    if (std::any_of(tensor.bytes.begin() + at, tensor.bytes.begin() + at + half, [](char byte) { return byte != 0; }))
      return false;
  return true;
}

} // namespace sluice
