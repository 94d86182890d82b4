// SPDX-License-Identifier: Apache-2.0
// Shares of zeros in what ops wrote, for profiles.
#include "runtime/cuda/ZeroCounts.h"

#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

#include <type_traits>

namespace sluice {

namespace {

constexpr int lanes = 32;
constexpr unsigned countBlocks = 1024;
constexpr size_t mostCounts = size_t(1) << 14;

__device__ inline bool isZero(float x) { return bitsOfFloat(x) == 0; }
template <typename Half> __device__ inline bool isZero(Half x) { return x.bits == 0; }

template <typename T> __global__ void countZerosKernel(const T *x, int64_t count, unsigned long long *zeros) {
  __shared__ unsigned long long warps[blockThreads / lanes];
  unsigned long long mine = 0;
  SLUICE_GRID_LOOP(i, count)
  mine += isZero(x[i]) ? 1 : 0;
  const unsigned long long all = blockSum(mine, warps);
  if (threadIdx.x == 0)
    atomicAdd(zeros, all);
}

} // namespace

ZeroCounts::ZeroCounts() {
  void *address = nullptr;
  checkCuda(cudaMalloc(&address, mostCounts * sizeof *counts), "cannot allocate counts of zeros");
  counts = static_cast<unsigned long long *>(address);
}
ZeroCounts::~ZeroCounts() { cudaFree(counts); }

std::optional<size_t> ZeroCounts::add(cudaStream_t stream, const void *x, const Tensor &tensor) {
  if (elements.size() == mostCounts)
    return std::nullopt;
  const int64_t count = tensor.shape.elements();
  unsigned long long *zeros = counts + elements.size();
  checkCuda(cudaMemsetAsync(zeros, 0, sizeof *zeros, stream), "cannot clear a count of zeros");
  forStored(tensor.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *values = static_cast<const T *>(x);
    const auto kernel = countZerosKernel<T>;
    kernel<<<std::min(countBlocks, blocksFor(count, blockThreads)), blockThreads, 0, stream>>>(values, count, zeros);
  });
  elements.push_back(count);
  return elements.size() - 1;
}

std::vector<double> ZeroCounts::take() {
  std::vector<unsigned long long> zeros(elements.size());
  checkCuda(cudaMemcpy(zeros.data(), counts, zeros.size() * sizeof *counts, cudaMemcpyDeviceToHost),
            "cannot read counts of zeros");
  std::vector<double> shares;
  for (size_t i = 0; i < zeros.size(); ++i)
    shares.push_back(static_cast<double>(zeros[i]) / static_cast<double>(std::max<int64_t>(1, elements[i])));
  elements.clear();
  return shares;
}

} // namespace sluice
