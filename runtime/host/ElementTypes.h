// SPDX-License-Identifier: Apache-2.0
// What the host's kernels refuse: activations in other floats than F32.
#pragma once

#include "runtime/Tensor.h"

#include <stdexcept>
#include <string>

namespace sluice {

/// Throws std::invalid_argument naming `node` for BF16 and F16.
inline void requireF32(const char *node, DataType type) {
  if (isHalf(type))
    throw std::invalid_argument(std::string("'") + node +
                                "' has tensors of 16 bits: the host runtime computes in fp32 only");
}

} // namespace sluice
