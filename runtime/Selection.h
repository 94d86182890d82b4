// SPDX-License-Identifier: Apache-2.0
// Kernels that choose elements of rows: the best ones, and those that data name. Rows lie along the last dimension.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// ids [rows..., count] I64 = the positions of the `count` largest (`smallest`: smallest) elements of every row of x
/// [rows..., columns] F32, the best one first. Of equal elements the one in front comes first (`last`: the one after);
/// NaN is larger than any number.
class Top : public Kernel {
public:
  Top(Node node, Shape x, int64_t count, bool smallest, bool last);
  void run(Stream &, const Tensor &x, const Tensor &ids) const;

private:
  int64_t rows, columns, count;
  bool smallest, last;
};

/// y [rows..., count] = the elements of every row of x [rows..., columns] at ids [rows..., count] I64; all row-major, x
/// and y F32. An id outside [0, columns) ends the step with an error; on a device that is thrown by
/// Session::synchronize(), and until then its element is NaN and its gradient dropped.
class Pick : public Kernel {
public:
  Pick(Node node, Shape x, Shape ids);
  void forward(Stream &, const Tensor &x, const Tensor &ids, const Tensor &y) const;
  /// dx: each element the sum of dy where its id stands, in float and in the order of the ids; zero where none does.
  void backward(Stream &, const Tensor &dy, const Tensor &ids, const Tensor &dx) const;

private:
  int64_t rows, columns, count;
};

} // namespace sluice
