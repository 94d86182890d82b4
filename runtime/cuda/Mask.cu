// SPDX-License-Identifier: Apache-2.0
// Masks, alone and in front of packed forms.
#include "runtime/cuda/Codec.h"

#include "runtime/cuda/Storage.h"
#include "runtime/kernels/CodecRules.h"

namespace sluice {

namespace {

/// A thread makes four bits of a word, eight neighbours bring them together. All threads of a warp go round equally
/// often.
template <typename T>
__global__ void maskKernel(const T *x, uint32_t *words, int64_t count, int64_t wordCount, bool positive) {
  const int64_t whole = (wordCount * 8 + 31) / 32 * 32;
  SLUICE_GRID_LOOP(g, whole) {
    float in[4] = {-1, -1, -1, -1};
    if (4 * g + 4 <= count)
      loadVector(in, x + 4 * g);
    else
      for (int i = 0; 4 * g + i < count; ++i)
        in[i] = widened(x[4 * g + i]);
    const int lane = static_cast<int>(g % 8);
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i)
      bits |= static_cast<uint32_t>(positive ? in[i] > 0 : !(in[i] <= 0)) << (4 * lane + i);
    for (int distance = 4; distance > 0; distance /= 2)
      bits |= __shfl_xor_sync(0xffffffffu, bits, distance);
    if (lane == 0 && g / 8 < wordCount)
      words[g / 8] = bits;
  }
}

/// Sixteen neighbouring threads say whether a block has a value below 0. All threads of a warp go round equally often.
template <typename T> __global__ void belowKernel(const T *x, uint8_t *below, int64_t count) {
  const int64_t groups = signBlocks(count) * 16, whole = (groups + 31) / 32 * 32;
  SLUICE_GRID_LOOP(g, whole) {
    uint32_t found = 0;
    for (int64_t i = 4 * g; i < 4 * g + 4 && i < count; ++i)
      found |= static_cast<uint32_t>(widened(x[i]) < 0);
    for (int distance = 8; distance > 0; distance /= 2)
      found |= __shfl_xor_sync(0xffffffffu, found, distance);
    if (g % 16 == 0 && g < groups)
      below[g / 16] = static_cast<uint8_t>(found);
  }
}

template <typename T>
__global__ void restoreSignsKernel(const uint32_t *bits, const uint8_t *below, T *x, int64_t count, float smallest) {
  SLUICE_GRID_LOOP(i, count)
  store(x + i, withSign(widened(x[i]), bits[i / 32] >> (i % 32) & 1, below[i / signBlock], smallest));
}

} // namespace

void Mask::encode(Stream &stream, const Tensor &x, const Tensor &bits) const {
  const void *values = stream.address(x);
  auto *to = stream.data<uint32_t>(bits);
  const auto words = static_cast<int64_t>(bits.bytes() / sizeof(uint32_t));
  if (elements == 0)
    return;
  stream.launch(node.as(OpRole::Encode), "encode mask", [&] {
    forStored(x.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      const T *from = static_cast<const T *>(values);
      const auto kernel = maskKernel<T>;
      kernel<<<blocksFor(words * 8, blockThreads), blockThreads, 0, native(stream)>>>(from, to, elements, words,
                                                                                      positive);
    });
  });
}

void packSigns(cudaStream_t stream, const void *x, DataType type, void *bits, int64_t count) {
  const int64_t blocks = signBlocks(count), words = 2 * blocks;
  forStored(type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *from = static_cast<const T *>(x);
    const auto mask = maskKernel<T>;
    mask<<<blocksFor(words * 8, blockThreads), blockThreads, 0, stream>>>(from, static_cast<uint32_t *>(bits), count,
                                                                          words, false);
    const auto below = belowKernel<T>;
    below<<<blocksFor(blocks * 16, blockThreads), blockThreads, 0, stream>>>(
        from, static_cast<uint8_t *>(bits) + 8 * blocks, count);
  });
}
void restoreSigns(cudaStream_t stream, const void *bits, void *x, DataType type, int64_t count) {
  forStored(type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = restoreSignsKernel<T>;
    kernel<<<blocksFor(count, blockThreads), blockThreads, 0, stream>>>(
        static_cast<const uint32_t *>(bits), static_cast<const uint8_t *>(bits) + 8 * signBlocks(count),
        static_cast<T *>(x), count, smallestNormal(type));
  });
}

} // namespace sluice
