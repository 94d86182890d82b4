// SPDX-License-Identifier: Apache-2.0
// The index in front of the pool of zvc on cuda, for the compiler, which makes room for it, and the runtime.
#pragma once

#include <cstdint>

namespace sluice {

/// 64 bits for each part of a packed tensor, from number slot / poolIndexUnit on, where the tensor's slot begins in the
/// spill arena, of `spill` bytes in all. Tensors have poolSmallest bytes at least, so that no two of them meet there.
constexpr int64_t poolIndexUnit = 2048, poolSmallest = 4096;
constexpr int64_t poolIndexBytes(int64_t spill) { return (spill / poolIndexUnit + 8) / 8 * 64; }

} // namespace sluice
