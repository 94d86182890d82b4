// SPDX-License-Identifier: Apache-2.0
// Zero values on the device, counted for profiles.
#pragma once

#include "runtime/Stream.h"

#include <cuda_runtime.h>
#include <optional>
#include <vector>

namespace sluice {

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
