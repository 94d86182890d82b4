// SPDX-License-Identifier: Apache-2.0
// Small tensors whose values are known at compile time: shapes, axes, scales and what exporters compute from them.
// Integers of every width and booleans are int64; floats of every width are doubles rounded to float32 after each
// operation.
#ifndef SLUICE_FRONTEND_HOST_TENSOR_H
#define SLUICE_FRONTEND_HOST_TENSOR_H

#include "frontend/OnnxFile.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// A small tensor that is computed while compiling: all integers and truth values as int64, all floats as double, so
/// that a folder has two cases instead of one for each element type. Row-major; `ints` or `floats` has all elements,
/// the other is empty.
struct HostTensor {
  std::vector<int64_t> shape;
  bool integral = true;
  std::vector<int64_t> ints;  ///< values when integral
  std::vector<double> floats; ///< values otherwise

  static constexpr int64_t maximumElements = 1 << 24; ///< a causal mask of 4096 tokens has as many
  static constexpr size_t maximumRank = 32;
  /// Whether a tensor of the shape is small enough: its elements, and the product of all extents but zeros, which loops
  /// run over.
  static bool fits(const std::vector<int64_t> &shape);

  /// Integers [n], or one of rank 0.
  static HostTensor vector(std::vector<int64_t> values);
  static HostTensor scalar(int64_t value);
  /// Zeros of a shape; nothing when it does not fit.
  static std::optional<HostTensor> zeros(std::vector<int64_t> shape, bool integral);
  /// A copy of a file's tensor; nothing when it is large or of an element type that shape arithmetic does not know.
  static std::optional<HostTensor> from(const FileTensor &tensor);

  int64_t size() const { return static_cast<int64_t>(integral ? ints.size() : floats.size()); }
  double number(int64_t i) const { return integral ? static_cast<double>(ints[i]) : floats[i]; }
  /// Element i becomes element j of `from`, by toInteger() where that one is a float and this one is not.
  void set(int64_t i, const HostTensor &from, int64_t j);
};

/// The number without its fraction; what fits no int64_t, NaN among it, is the nearest that does.
int64_t toInteger(double number);
/// "[2, 3]" for messages.
std::string shapeText(const std::vector<int64_t> &shape);
/// Number of elements, or nothing when the product overflows or an extent is negative.
std::optional<int64_t> elementCount(const std::vector<int64_t> &shape);
/// Numpy's broadcast shape, or nothing.
std::optional<std::vector<int64_t>> broadcastShapes(const std::vector<int64_t> &a, const std::vector<int64_t> &b);
/// Flat index into `shape` of the element that broadcasts to flat index `at` of `full`.
int64_t broadcastIndex(int64_t at, const std::vector<int64_t> &full, const std::vector<int64_t> &shape);

} // namespace sluice

#endif
