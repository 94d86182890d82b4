// SPDX-License-Identifier: Apache-2.0
// bfloat16, the upper half of a float, one value at a time.
#pragma once

#include "runtime/Math.h"

namespace sluice {

struct BFloat16 {
  uint16_t bits;
};

SLUICE_KERNEL float widened(float x) { return x; }
SLUICE_KERNEL float widened(BFloat16 x) { return floatOfBits(uint32_t(x.bits) << 16); }

/// Rounds to nearest even; every NaN becomes the same one, as a GPU's instruction has it.
SLUICE_KERNEL BFloat16 bfloat16Of(float x) {
  const uint32_t bits = bitsOfFloat(x);
  return {(bits & 0x7fffffff) > 0x7f800000 ? uint16_t(0x7fff)
                                           : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

} // namespace sluice
