// SPDX-License-Identifier: Apache-2.0
// Matrix products with Gelu, or its slope, in their epilogues.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

struct MatmulGeluOptions {
  bool transposeA = false, transposeB = false; ///< op(a), op(b): the two dimensions exchanged
  bool bias = false;                           ///< forward() adds one, backward() has its gradient
  bool gradient = false;                       ///< made for backward(), else for forward()
  Algorithm algorithm = {};
  DataType type = DataType::BF16;
  KERNEL_OPTION(withTransposeA, transposeA)
  KERNEL_OPTION(withTransposeB, transposeB)
  KERNEL_OPTION(withBias, bias)
  KERNEL_OPTION(withGradient, gradient)
  KERNEL_OPTION(withAlgorithm, algorithm)
  KERNEL_OPTION(withType, type)
};

/// c [M,N] = op(a) op(b), and the Gelu by tanh of it or the product with its slope, in one kernel where the library has
/// one for this machine. Else buildPrimitives() notes that it has none, and there are two, with the same results up to
/// rounding: what is computed depends on the machine and on the arguments alone, so that a second run gives the same
/// bits. All of `type`, BF16 or F16, a bias [N] as well; rows of a, b and c are whole multiples of 16 bytes. The cuda
/// runtime alone has it.
class MatmulGelu : public Kernel {
public:
  MatmulGelu(Node node, Shape a, Shape b, Shape c, MatmulGeluOptions options = {});
  ~MatmulGelu();
  MatmulGelu(MatmulGelu &&);
  /// x = op(a) op(b) + bias, y = gelu(x), taken of x before that is rounded
  void forward(Stream &, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &y, const Tensor &x,
               const Tensor &scratch) const;
  /// dx = op(a) op(b) * slope of gelu at x; dbias = sum of dx over the rows
  void backward(Stream &, const Tensor &a, const Tensor &b, const Tensor &x, const Tensor &dx, const Tensor &dbias,
                const Tensor &scratch) const;

  struct Impl;

private:
  std::shared_ptr<Impl> impl;
};

} // namespace sluice
