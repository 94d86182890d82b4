// SPDX-License-Identifier: Apache-2.0
// The kernel that brings back the floats of a weight that is held in fewer bits.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Quantization.h"

namespace sluice {

/// The floats that a form, U8 [bytes], of 8 or 4 bits of a matrix [rows, columns] stands for, see Quantization. y is
/// row-major, of any float type: what a Coding says is computed in float and then rounded to y's type. All targets give
/// the same bits.
class Dequantize : public Kernel {
public:
  Dequantize(Node node, Shape matrix, int64_t bits, int64_t group, int64_t dimension,
             Coding coding = Coding::Symmetric);
  /// y [rows, columns]: all of it.
  void run(Stream &, const Tensor &form, const Tensor &y) const;
  /// y [ids..., columns]: the rows that ids, I64, name; one outside [0, rows) is what it is to an Embedding.
  void rows(Stream &, const Tensor &form, const Tensor &ids, const Tensor &y) const;

private:
  Quantization matrix;
};

} // namespace sluice
