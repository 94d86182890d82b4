// SPDX-License-Identifier: Apache-2.0
// How the host's kernels load and store activations: floats, or bfloat16 in memory and float in registers.
#pragma once

#include "runtime/Tensor.h"
#include "runtime/kernels/BFloat16.h"

#include <stdexcept>
#include <string>

namespace sluice {

/// Rounds to nearest even where 16 bits are stored.
inline void store(float *to, float x) { *to = x; }
inline void store(BFloat16 *to, float x) { *to = bfloat16Of(x); }

/// Throws std::invalid_argument naming `node` for F16.
inline void refuseF16(const char *node, DataType type) {
  if (type == DataType::F16)
    throw std::invalid_argument(std::string("'") + node +
                                "' has tensors of fp16: the host runtime computes in fp32 and bf16");
}

/// Calls work(null pointer of the stored type) for the type of an activation of `node`, whose F16 is refused.
template <typename Work> void forStored(const char *node, DataType type, Work &&work) {
  refuseF16(node, type);
  if (type == DataType::BF16)
    work(static_cast<BFloat16 *>(nullptr));
  else
    work(static_cast<float *>(nullptr));
}
/// The type whose null pointer that is.
template <typename Pointer> using Stored = std::remove_pointer_t<Pointer>;

} // namespace sluice
