// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: A. Graves et al., Connectionist Temporal Classification, ICML 2006, equations
// 6 to 16, averaged as torch.nn.CTCLoss does.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// What a CTC loss is of: scores F32 [samples, steps, classes], of which it takes log-softmax over the classes, and
/// labels I64 [samples, labels]. Labels end before the first that is `blank` or `ignoreIndex` (Loss::none: no such
/// value), where no lengths say it.
struct CtcGeometry {
  int64_t samples, steps, classes, labels, blank, ignoreIndex;
  bool zeroInfinity; ///< a target that its steps cannot spell counts 0; else its loss is infinity and its gradient NaN

  /// Places of a target in which blanks stand around all its labels.
  constexpr int64_t places() const { return 2 * labels + 1; }
};

/// All tensors row-major. inputLengths and targetLengths are I64 [samples]: how many of the steps and labels count, at
/// most all; absent: all steps, labels up to their end. A label that is none of the classes is a DataError, as for
/// Loss.
class CtcLoss : public Kernel {
public:
  CtcLoss(Node node, Shape x, int64_t labels, int64_t blank, bool zeroInfinity, int64_t ignoreIndex = Loss::none);
  /// Writes one float to `loss`: the mean over the samples of each one's loss over its labels (1 at least).
  void forward(Stream &, const Tensor &x, const Tensor &target, const Tensor &inputLengths, const Tensor &targetLengths,
               const Tensor &loss, const Tensor &scratch) const;
  /// The gradient of that mean. dx may be of 16 bits.
  void backward(Stream &, const Tensor &x, const Tensor &target, const Tensor &inputLengths,
                const Tensor &targetLengths, const Tensor &dx, const Tensor &scratch) const;

private:
  CtcGeometry geometry;
};

/// Throws std::invalid_argument naming `node` unless x is [samples, steps, classes], with the blank among the classes.
CtcGeometry ctcGeometry(const char *node, const Shape &x, int64_t labels, int64_t blank, bool zeroInfinity,
                        int64_t ignoreIndex);

/// Bytes of scratch: of each sample log-sum-exps of its steps, the logarithms of all prefixes' probabilities at every
/// step, two rows of those of suffixes, and its loss.
constexpr int64_t ctcScratch(const CtcGeometry &g) {
  return g.samples * (g.steps + (g.steps + 2) * g.places() + 1) * static_cast<int64_t>(sizeof(double));
}

} // namespace sluice
