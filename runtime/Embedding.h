// SPDX-License-Identifier: Apache-2.0
// The kernel of tables whose rows are named by data: embeddings of token ids.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// y [ids..., row...] = the rows of table [rows, row...] that ids name; ids are I64, all tensors row-major, the table
/// and its gradient F32. An id outside [0, rows) ends the step with an error; on a device that is thrown by
/// Session::synchronize(), and until then its row is NaN and its gradient dropped.
class Embedding : public Kernel {
public:
  Embedding(Node node, Shape table, Shape ids);
  void forward(Stream &, const Tensor &table, const Tensor &ids, const Tensor &y) const;
  /// dtable: each row the sum of dy where its id stands, in double and in the order of the ids, so that neither threads
  /// nor target change its bits; zero where no id names the row. Needs no further memory of the table's size.
  void backward(Stream &, const Tensor &dy, const Tensor &ids, const Tensor &dtable, const Tensor &scratch) const;
  /// y [rows, row...]: the largest of the elements of x [ids..., row...] where the row's id stands, negative infinity
  /// where none does; NaN is larger than any number.
  void largest(Stream &, const Tensor &x, const Tensor &ids, const Tensor &y, const Tensor &scratch) const;

private:
  /// Of scratch, with which this target brings so many ids into the order of rows.
  static size_t bytesToOrder(int64_t count);

  int64_t rows, columns, count; ///< of the table; of ids
};

} // namespace sluice
