// SPDX-License-Identifier: Apache-2.0
// Zero values on the device: left out of copies to the host, and counted for profiles.
#pragma once

#include "runtime/Stream.h"

#include <cuda_runtime.h>
#include <optional>
#include <vector>

namespace sluice {

/// The tensor, of floats or halves, that lies at `x`, into a slot of packedBytes() in memory that the device can reach,
/// and back.
void packZeroValues(cudaStream_t stream, const void *x, void *slot, const Tensor &tensor);
void unpackZeroValues(cudaStream_t stream, const void *slot, void *x, const Tensor &tensor);

/// From here on Session::packedBytes() counts what packZeroValues() is given and leaves of that. No stream may be
/// running, here or there.
void clearPackedTotals();

/// Shares of zeros in what the ops of a step wrote, counted in device memory.
class ZeroCounts {
public:
  ZeroCounts();
  ~ZeroCounts();
  ZeroCounts(const ZeroCounts &) = delete;
  ZeroCounts &operator=(const ZeroCounts &) = delete;

  /// Counts the zeros of the tensor that lies at `x`. Returns the number of that count since the last take(), or
  /// nothing where there is no room for more of them.
  std::optional<size_t> add(cudaStream_t stream, const void *x, const Tensor &tensor);
  /// All shares since the last call. No stream may be running.
  std::vector<double> take();

private:
  unsigned long long *counts = nullptr;
  std::vector<int64_t> elements; ///< of the tensors that were counted
};

} // namespace sluice
