// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, for kernels that are compiled by the host compiler.
#pragma once

#include "runtime/cuda/Cut.h"

#include <cuda_runtime.h>

namespace sluice {

/// result[c] = sum of x[r][c] over all rows; `partials` holds sumScratch(cut, 1) bytes.
void columnSums(cudaStream_t stream, const Cut &cut, const float *x, double *partials, float *result);

/// y[r][c] += beta * bias[r % biasRows * rowStep + c * columnStep].
void addBias(cudaStream_t stream, float *y, const float *bias, int64_t rows, int64_t columns, int64_t biasRows,
             int64_t rowStep, int64_t columnStep, float beta);

/// Weights [O,I,window] to [O,window,I] (turn) or back.
void turnWeights(cudaStream_t stream, const float *from, float *to, int64_t outs, int64_t ins, int64_t window,
                 bool back);

} // namespace sluice
