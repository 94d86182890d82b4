// SPDX-License-Identifier: Apache-2.0
// Launches runtime/kernels/DirectConv.h.
#pragma once

#include "runtime/kernels/DirectConv.h"

#include <cuda_runtime.h>

namespace sluice {

/// first, second -> result: x, w -> y; dy, w -> dx; dy, x -> dw, which is F32, or has the type `gradient`, the
/// geometry's halves and in [O,window,I] order.
void directConvolution(cudaStream_t stream, const ConvGeometry &geometry, const void *first, const void *second,
                       void *result, DataType gradient = DataType::F32);

} // namespace sluice
