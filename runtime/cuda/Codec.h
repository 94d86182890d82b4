// SPDX-License-Identifier: Apache-2.0
// Values that a codec refused: kernels cannot throw, so they leave a note in device memory. Masks in front of packed
// forms.
#pragma once

#include "runtime/cuda/Launch.h"

namespace sluice {

/// Throws ValueNotStorable when a kernel has met such a value since the last call. No stream may be running. Reads the
/// note only in programs that pack.
void checkRefused();

/// `bits`: signBytes(count) bytes in device memory, as Codec.h lays them out. The second puts `count` values, as a
/// codec gave them back, on their side of 0 again.
void packSigns(cudaStream_t stream, const float *x, void *bits, int64_t count);
void restoreSigns(cudaStream_t stream, const void *bits, float *x, int64_t count);

} // namespace sluice
