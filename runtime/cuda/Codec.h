// SPDX-License-Identifier: Apache-2.0
// Masks in front of packed forms.
#pragma once

#include "runtime/Tensor.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

/// Copies that pack read and write the locked host arena from their kernels: few blocks saturate the link and leave the
/// device to the compute stream.
constexpr unsigned copyBlocks = 32;

/// `bits`: signBytes(count) bytes in device memory, as Codec.h lays them out. The second puts `count` values, as a
/// codec gave them back, on their side of 0 again. x is F32, BF16 or F16.
void packSigns(cudaStream_t stream, const void *x, DataType type, void *bits, int64_t count);
void restoreSigns(cudaStream_t stream, const void *bits, void *x, DataType type, int64_t count);

} // namespace sluice
