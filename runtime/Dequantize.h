// SPDX-License-Identifier: Apache-2.0
// Kernels that bring back the floats of a weight that is held in fewer bits: all of them, or those of a block at a time
// for a product.
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

using QuantizedMatmulOptions = MatmulOptions;

/// Matmul with a right factor b [rows, columns] that is held in fewer bits: the bytes of the form, U8, or of 16 bits
/// the matrix in BF16. Some columns of op(b) after the other become elements of a's type in scratch, rounded as
/// Dequantize does, so that b as a whole is nowhere in that type. a is not transposed. Synchrony, results and biases
/// are Matmul's.
class QuantizedMatmul : public Kernel {
public:
  QuantizedMatmul(Node node, Shape a, Shape b, int64_t bits, int64_t group, int64_t dimension, Coding coding,
                  QuantizedMatmulOptions options = {});
  ~QuantizedMatmul();
  QuantizedMatmul(QuantizedMatmul &&);
  void run(Stream &, const Tensor &a, const Tensor &form, const Tensor &bias, const Tensor &c,
           const Tensor &scratch) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Of a matrix [rows, columns]; throws std::invalid_argument naming `node` where none is held like that.
Quantization formOf(Node node, const Shape &matrix, int64_t bits, int64_t group, int64_t dimension, Coding coding);

} // namespace sluice
