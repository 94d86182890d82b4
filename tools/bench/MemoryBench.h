// SPDX-License-Identifier: Apache-2.0
// What kernel-bench says of kernels that memory bounds.
#pragma once

#include <cstdint>

namespace sluice {

/// Prints how fast the kernels of BatchNorm and ReLU go over tensors that no cache has, as most are in a step, and a
/// copy by one core.
void benchElementwise(int64_t batch);

/// Prints how long the 3x3 maximum of every other pixel takes, and its gradient, of tensors that caches may have.
void benchPools(int64_t batch);

} // namespace sluice
