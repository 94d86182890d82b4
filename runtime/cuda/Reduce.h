// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, for kernels that are compiled by the host compiler. `type` is that of the activation.
#pragma once

#include "runtime/cuda/Cut.h"

#include <cuda_runtime.h>

namespace sluice {

/// result[c] = sum of x[r][c] over all rows; `partials` holds cuda::columnScratch(rows, columns) bytes.
void columnSums(cudaStream_t stream, int64_t rows, int64_t columns, DataType type, const void *x, double *partials,
                float *result);

/// y[r][c] += beta * bias[r % biasRows * rowStep + c * columnStep]; the bias is F32 or of y's type.
void addBias(cudaStream_t stream, DataType type, void *y, DataType biasType, const void *bias, int64_t rows,
             int64_t columns, int64_t biasRows, int64_t rowStep, int64_t columnStep, float beta);

/// Weights [O,I,window] to [O,window,I] (turn) or back; `add`: added to what is there.
void turnWeights(cudaStream_t stream, DataType type, const void *from, float *to, int64_t outs, int64_t ins,
                 int64_t window, bool back, bool add = false);

} // namespace sluice
