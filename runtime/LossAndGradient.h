// SPDX-License-Identifier: Apache-2.0
// A cross-entropy with its gradient.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// What Loss of SoftmaxCrossEntropy with these arguments writes by forward() and by backward(), with the same bits, by
/// one kernel that reads a sample for its sum and, from the cache, once more. dx may be of 16 bits, and in x's bytes
/// where both have one type. The cuda runtime alone has it.
class LossAndGradient : public Kernel {
public:
  LossAndGradient(Node, Shape x, int64_t ignoreIndex = Loss::none, int64_t classes = 0, int64_t first = 0,
                  int64_t targets = 0);
  void run(Stream &, const Tensor &x, const Tensor &target, const Tensor &dx, const Tensor &loss,
           const Tensor &scratch) const;

private:
  Shape x;
  int64_t ignoreIndex, classes, first, targets;
};

} // namespace sluice
