// SPDX-License-Identifier: Apache-2.0
// Convolutions that compute what BatchNorm asks of a whole result.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

struct ConvNormOptions {
  int64_t groups = 1;
  bool addend = false; ///< gradient() has one
  Algorithm algorithm = {};
  DataType type = DataType::BF16;
  float epsilon = 0; ///< of statistics()
  KERNEL_OPTION(withGroups, groups)
  KERNEL_OPTION(withAddend, addend)
  KERNEL_OPTION(withAlgorithm, algorithm)
  KERNEL_OPTION(withType, type)
  KERNEL_OPTION(withEpsilon, epsilon)
};

/// A convolution with what the BatchNorm beside it asks of the whole result, in one kernel where the target has one, or
/// in two with the same results up to rounding. Of `type` BF16 or F16, in NHWC order, weights [O,kh,kw,C/groups];
/// vectors are F32. The cuda runtime alone has it.
class ConvNorm : public Kernel {
public:
  ConvNorm(Node node, ConvPass pass, Shape x, Shape w, Shape y, Window window, ConvNormOptions options);
  ~ConvNorm();
  ConvNorm(ConvNorm &&);
  /// y = x * w, and mean and 1/sqrt(biased variance + epsilon) of its channels
  void statistics(Stream &, const Tensor &x, const Tensor &w, const Tensor &y, const Tensor &mean, const Tensor &rstd,
                  const Tensor &scratch) const;
  /// dz = (gradient of y with respect to its input + addend) where z > 0, else 0; dscale = sum of dz * (x - mean) *
  /// rstd, dbias = sum of dz, over all but channels. z, x, addend and dz have the input's shape.
  void gradient(Stream &, const Tensor &dy, const Tensor &w, const Tensor &z, const Tensor &x, const Tensor &mean,
                const Tensor &rstd, const Tensor &addend, const Tensor &dz, const Tensor &dscale, const Tensor &dbias,
                const Tensor &scratch) const;

  struct Impl;

private:
  std::shared_ptr<Impl> impl;
};

} // namespace sluice
