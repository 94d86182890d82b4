// SPDX-License-Identifier: Apache-2.0
// Launches runtime/common/DirectConv.h.
#pragma once

#include "runtime/common/DirectConv.h"

#include <cuda_runtime.h>

namespace sluice {

/// first, second -> result: x, w -> y; dy, w -> dx; dy, x -> dw.
void directConvolution(cudaStream_t stream, const ConvGeometry &geometry, const void *first, const void *second,
                       void *result);

} // namespace sluice
