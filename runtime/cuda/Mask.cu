// SPDX-License-Identifier: Apache-2.0
// Masks, alone and in front of packed forms.
#include "runtime/cuda/Codec.h"

#include "runtime/cuda/Storage.h"
#include "runtime/kernels/CodecRules.h"

namespace sluice {

namespace {

/// A warp takes lanes * lanes neighbours at a time, of which lane i keeps the word of the i-th `lanes`: so what crosses
/// the link, where a mask goes to host memory or comes from there, are whole lines.
constexpr int lanes = 32, blocksOfWarp = lanes * lanes / static_cast<int>(signBlock);
constexpr uint32_t everyLane = 0xffffffffu;

/// for (chunk : all chunks of so many words of this thread's warp), whose lanes stay together.
#define SLUICE_WARP_LOOP(chunk, words)                                                                                 \
  for (int64_t chunk = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / lanes;                          \
       chunk < ((words) + lanes - 1) / lanes; chunk += static_cast<int64_t>(gridDim.x) * blockDim.x / lanes)

/// `below`: whether a block of signBlock values has one below 0; null: nobody asks.
template <typename T>
__global__ void maskKernel(const T *x, uint32_t *words, uint8_t *below, int64_t count, int64_t wordCount,
                           bool positive) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  SLUICE_WARP_LOOP(chunk, wordCount) {
    uint32_t word = 0, negative = 0;
#pragma unroll 4
    for (int i = 0; i < lanes; ++i) {
      const int64_t at = (chunk * lanes + i) * lanes + lane;
      const float value = at < count ? widened(x[at]) : 0.0f;
      const uint32_t above = __ballot_sync(everyLane, positive ? value > 0 : isAbove(value)),
                     under = below ? __ballot_sync(everyLane, value < 0) : 0;
      word = i == lane ? above : word;
      negative |= i / 2 == lane ? under : 0;
    }
    if (chunk * lanes + lane < wordCount)
      words[chunk * lanes + lane] = word;
    if (below && lane < blocksOfWarp && chunk * blocksOfWarp + lane < signBlocks(count))
      below[chunk * blocksOfWarp + lane] = negative != 0;
  }
}

template <typename T>
__global__ void restoreSignsKernel(const uint32_t *words, const uint8_t *below, T *x, int64_t count, float smallest) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t wordCount = 2 * signBlocks(count);
  SLUICE_WARP_LOOP(chunk, wordCount) {
    const bool hasWord = chunk * lanes + lane < wordCount,
               hasBlock = lane < blocksOfWarp && chunk * blocksOfWarp + lane < signBlocks(count);
    const uint32_t word = hasWord ? words[chunk * lanes + lane] : 0,
                   negative = hasBlock ? below[chunk * blocksOfWarp + lane] : 0;
#pragma unroll 4
    for (int i = 0; i < lanes; ++i) {
      const int64_t at = (chunk * lanes + i) * lanes + lane;
      const uint32_t above = __shfl_sync(everyLane, word, i), under = __shfl_sync(everyLane, negative, i / 2);
      if (at < count)
        store(x + at, withSign(widened(x[at]), above >> lane & 1, under, smallest));
    }
  }
}

unsigned blocksForWords(int64_t words, unsigned most) { return std::min(most, blocksFor(words, blockThreads)); }

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
      kernel<<<blocksForWords(words, allBlocks), blockThreads, 0, native(stream)>>>(from, to, nullptr, elements, words,
                                                                                    positive);
    });
  });
}

void packSigns(cudaStream_t stream, const void *x, DataType type, void *bits, int64_t count, unsigned blocks) {
  const int64_t words = 2 * signBlocks(count);
  auto *below = static_cast<uint8_t *>(bits) + 4 * words;
  forStored(type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const T *from = static_cast<const T *>(x);
    const auto kernel = maskKernel<T>;
    kernel<<<blocksForWords(words, blocks), blockThreads, 0, stream>>>(from, static_cast<uint32_t *>(bits), below,
                                                                       count, words, false);
  });
}
void restoreSigns(cudaStream_t stream, const void *bits, void *x, DataType type, int64_t count, unsigned blocks) {
  const int64_t words = 2 * signBlocks(count);
  forStored(type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = restoreSignsKernel<T>;
    kernel<<<blocksForWords(words, blocks), blockThreads, 0, stream>>>(
        static_cast<const uint32_t *>(bits), static_cast<const uint8_t *>(bits) + 4 * words, static_cast<T *>(x), count,
        smallestNormal(type));
  });
}

} // namespace sluice
