// SPDX-License-Identifier: Apache-2.0
// What kernels may be told besides the shapes that they are made for, each by name: programs say what is unusual only.
#pragma once

#include "runtime/Tensor.h"

namespace sluice {

/// Which of several ways a kernel computes; results differ by rounding. Chosen when compiling and written into the
/// program.
struct Algorithm {
  const char *name =
      "";            ///< host: an implementation of oneDNN or of ours (host/ConvEngine.h); empty: the kernel chooses
  int64_t parts = 1; ///< host: the batch, of our convolutions the channels, are cut into so many runs
  int64_t workspace = 0; ///< cuda: bytes that the engine may have; 0: what setKernelPolicy() says
};

/// Declares the setter of an option: MatmulOptions().withTransposeB(true).withBias({10}).
#define KERNEL_OPTION(setter, option)                                                                                  \
  auto &setter(decltype(option) value) { return option = value, *this; }

/// Of Conv.
struct ConvOptions {
  int64_t groups = 1;
  bool bias = false; ///< forward() adds one, backwardWeight() has its gradient
  Algorithm algorithm = {};
  DataType type = DataType::F32; ///< of x, w, y and their gradients
  KERNEL_OPTION(withGroups, groups)
  KERNEL_OPTION(withBias, bias)
  KERNEL_OPTION(withAlgorithm, algorithm)
  KERNEL_OPTION(withType, type)
};

/// Of Matmul.
struct MatmulOptions {
  bool transposeA = false, transposeB = false; ///< op(a), op(b): the last two dimensions exchanged
  float alpha = 1, beta = 1;
  Shape bias = {}; ///< rank 0: there is none
  Algorithm algorithm = {};
  DataType factors = DataType::F32, result = DataType::F32;
  KERNEL_OPTION(withTransposeA, transposeA)
  KERNEL_OPTION(withTransposeB, transposeB)
  KERNEL_OPTION(withAlpha, alpha)
  KERNEL_OPTION(withBeta, beta)
  KERNEL_OPTION(withBias, bias)
  KERNEL_OPTION(withAlgorithm, algorithm)
  KERNEL_OPTION(withFactors, factors)
  KERNEL_OPTION(withResult, result)
};

} // namespace sluice
