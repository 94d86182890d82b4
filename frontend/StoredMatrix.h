// SPDX-License-Identifier: Apache-2.0
// Matrices of floats that a file holds in fewer bits. No MLIR in here.
#ifndef SLUICE_FRONTEND_STORED_MATRIX_H
#define SLUICE_FRONTEND_STORED_MATRIX_H

#include "runtime/Quantization.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// A matrix of numbers of a file, in place: number r * rowStep + c * columnStep of those that `bytes` hold one after
/// the other is element (r, c).
struct PackedNumbers {
  std::string_view bytes;
  int bits = 32; ///< floats, else integers of 8 bits, or of 4, the first of a byte in its lower half
  bool isSigned = false;
  int64_t rowStep = 0, columnStep = 0;

  float at(int64_t row, int64_t column) const;
  /// Whether all elements of a matrix of these extents, 1 or more, lie in the bytes.
  bool hold(int64_t rows, int64_t columns) const;
};

/// What the parts of a matrix are in a file: element (r, c) is (codes - zeros) * scales, with the scale and the zero
/// point of its group. Refers to the file.
struct StoredMatrix {
  Quantization form;
  PackedNumbers codes, scales;
  std::optional<PackedNumbers> zeros = std::nullopt; ///< of codes as they are, signed or not
  float zero = 0;                                    ///< without zeros, of all groups

  /// What is wrong: numbers that are not there, or not finite. Decides the form's coding.
  std::optional<std::string> check();
  /// The form, see runtime/Quantization.h: the very numbers, in another order.
  std::string bytes() const;

private:
  /// Of what runtime forms call codes, which are not negative.
  float zeroOf(int64_t row, int64_t column) const;
};

} // namespace sluice

#endif
