// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, for kernels that are compiled by the host compiler. `type` is that of the activation.
#pragma once

#include "runtime/cuda/Cut.h"

#include <cuda_runtime.h>

namespace sluice {

/// result[c] = sum of x[r][c] over all rows; `partials` holds cuda::columnScratch(rows, columns) bytes.
void columnSums(cudaStream_t stream, int64_t rows, int64_t columns, DataType type, const void *x, double *partials,
                float *result);

/// beta * element (r % rows) * rowStep + c * columnStep of `data`, of F32 or the type of what it is added to.
struct Bias {
  DataType type;
  const void *data;
  int64_t rows = 1, rowStep = 0, columnStep = 1;
  float beta = 1;
};

/// y[r][c] += bias
void addBias(cudaStream_t stream, DataType type, void *y, int64_t rows, int64_t columns, const Bias &bias);

/// Extents of weights [O,I,window], and the type that they are read as.
struct TurnedWeights {
  DataType type;
  int64_t outs, ins, window;
};

/// Weights `from` [O,I,window] to floats `to` [O,window,I], or with `back` from [O,window,I] to [O,I,window]; `add`:
/// added to what is there. Only enqueues; they share no bytes.
void turnWeights(cudaStream_t stream, const TurnedWeights &weights, const void *from, float *to, bool back,
                 bool add = false);
/// Adds weights of that type to others in the same order.
void addWeights(cudaStream_t stream, const TurnedWeights &weights, const void *from, void *to);

} // namespace sluice
