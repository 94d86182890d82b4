// SPDX-License-Identifier: Apache-2.0
// How weights that are held fixed lie in memory and files in fewer bits, and what brings floats into that form and
// back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

/// The form of a matrix of floats, row-major.
/// bits 8, 4: `group` consecutive elements along `dimension` (0: of a column, 1: of a row; the last group of each may
/// be shorter) have one scale s = max |w| / (2^(bits-1) - 1). An element is the whole number n nearest to w / s, kept
/// as n + 2^(bits-1), and stands for n * s. First come the scales, F32, [groups, columns] or [rows, groups]; from a
/// multiple of 64 bytes on the elements, row by row: a byte each or, of 4 bits, two to a byte, where byte i of a row
/// holds column i in its lower half and column i + rowBytes() in its upper one.
/// bits 16: BF16, rounded to nearest even, without scales.
struct Quantization {
  int bits = 0; ///< 0: floats as they are
  int64_t group = 0;
  int dimension = 0;
  int64_t rows = 0, columns = 0;

  constexpr explicit operator bool() const { return bits != 0; }
  constexpr int64_t scaleRows() const { return dimension == 0 ? (rows + group - 1) / group : rows; }
  constexpr int64_t scaleColumns() const { return dimension == 0 ? columns : (columns + group - 1) / group; }
  constexpr int64_t scaleBytes() const { return bits == 16 ? 0 : 4 * scaleRows() * scaleColumns(); }
  /// Where the elements begin, in bytes.
  constexpr int64_t elementsAt() const { return (scaleBytes() + 63) / 64 * 64; }
  /// Of the elements of a row.
  constexpr int64_t rowBytes() const { return bits == 4 ? (columns + 1) / 2 : bits / 8 * columns; }
  constexpr int64_t bytes() const { return elementsAt() + rows * rowBytes(); }
  /// bf16, int8, int4: the words of --frozen.
  const char *name() const { return bits == 16 ? "bf16" : bits == 8 ? "int8" : "int4"; }
};

/// Fills `to` with the bytes of the matrix of floats that begin at byte `first`, whole elements.
using GiveFloats = std::function<void(size_t first, void *to, size_t bytes)>;
/// Gets the bytes of the matrix of floats in order, whole elements.
using TakeFloats = std::function<void(const void *data, size_t bytes)>;

/// The form of the matrix `name`. Few rows of floats are in memory at a time. Throws DataError where a number is not
/// finite, which scales cannot tell.
std::string quantized(const Quantization &form, const std::string &name, const GiveFloats &give);
/// The floats that the bytes stand for.
void dequantize(const Quantization &form, const char *bytes, const TakeFloats &take);

/// What the form takes from the matrix: the root of the sum of squares of the differences, over that of the matrix.
double relativeError(const Quantization &form, const std::string &name, const GiveFloats &give);

} // namespace sluice
