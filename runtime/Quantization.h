// SPDX-License-Identifier: Apache-2.0
// How weights that are held fixed lie in memory and files in fewer bits, and what brings floats into that form and
// back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

/// What the number c of an element, of `bits` bits, stands for with the scale s of its group.
/// Symmetric: (c - 2^(bits-1)) * s. Asymmetric: (c - z) * s with a zero point z of the group. NormalFloat: of 4 bits,
/// the c-th of 16 numbers from -1 to 1 that normally distributed weights use alike, times s (NF4 of T. Dettmers et al.,
/// QLoRA, NeurIPS 2023).
enum class Coding { Symmetric, Asymmetric, NormalFloat };

/// The form of a matrix of floats, row-major.
/// bits 8, 4: `group` consecutive elements along `dimension` (0: of a column, 1: of a row; the last group of each may
/// be shorter) have one scale and, of Asymmetric, one zero point. First come the scales, F32, [groups, columns] or
/// [rows, groups], then the zero points likewise; from a multiple of 64 bytes on the elements, row by row: a byte each
/// or, of 4 bits, two to a byte, where byte i of a row holds column i in its lower half and column i + rowBytes() in
/// its upper one. Floats become the nearest that can be said with s = max |w| / (2^(bits-1) - 1), of NormalFloat max
/// |w|, of Asymmetric (max(w, 0) - min(w, 0)) / (2^bits - 1) and a whole z; forms that a model brings have any finite s
/// and z. bits 16: BF16, rounded to nearest even, without scales.
struct Quantization {
  int bits = 0; ///< 0: floats as they are
  int64_t group = 0;
  int dimension = 0;
  int64_t rows = 0, columns = 0;
  Coding coding = Coding::Symmetric;

  constexpr explicit operator bool() const { return bits != 0; }
  constexpr int64_t scaleRows() const { return dimension == 0 ? (rows + group - 1) / group : rows; }
  constexpr int64_t scaleColumns() const { return dimension == 0 ? columns : (columns + group - 1) / group; }
  constexpr int64_t scales() const { return bits == 16 ? 0 : scaleRows() * scaleColumns(); }
  /// Of scales and zero points.
  constexpr int64_t scaleBytes() const { return (coding == Coding::Asymmetric ? 8 : 4) * scales(); }
  /// Where the elements begin, in bytes.
  constexpr int64_t elementsAt() const { return (scaleBytes() + 63) / 64 * 64; }
  /// Of the elements of a row.
  constexpr int64_t rowBytes() const { return bits == 4 ? (columns + 1) / 2 : bits / 8 * columns; }
  constexpr int64_t bytes() const { return elementsAt() + rows * rowBytes(); }
  /// bf16, int8, int4, nf4 or with zero points int8,asymmetric or int4,asymmetric: the words of --frozen.
  const char *name() const {
    if (coding == Coding::NormalFloat)
      return "nf4";
    if (coding == Coding::Asymmetric)
      return bits == 8 ? "int8,asymmetric" : "int4,asymmetric";
    return bits == 16 ? "bf16" : bits == 8 ? "int8" : "int4";
  }
};

/// "int4 in groups of 64 along 1": what tells forms of equal bytes apart. Files of weights say it of a tensor in their
/// metadata, under formKey(its name).
std::string describe(const Quantization &form);
std::string formKey(const std::string &name);

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
