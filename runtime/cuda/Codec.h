// SPDX-License-Identifier: Apache-2.0
// Packed forms, and masks in front of them, as kernels make them on any memory that the device can reach.
#pragma once

#include "runtime/Codec.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

/// Copies that pack read and write the locked host arena from their kernels: few blocks saturate the link and leave the
/// device to the compute stream.
constexpr unsigned copyBlocks = 32, allBlocks = ~0u;

/// packedBytes(codec, like) bytes of a codec other than zvc, at a multiple of 64 bytes, and back. `like`: the tensor at
/// x, F32, or BF16 or F16, which fp16 does not take. `blocks`: how many at most. Values that the codec refuses leave a
/// note (Note.h) with `node`, which watchRefusedValues() has looked at.
void packForm(cudaStream_t stream, Codec codec, const void *x, const Tensor &like, void *packed, const char *node,
              unsigned blocks);
void unpackForm(cudaStream_t stream, Codec codec, const void *packed, void *x, const Tensor &like, unsigned blocks);
void watchRefusedValues();

/// `bits`: signBytes(count) bytes, as runtime/Codec.h lays them out. The second puts `count` values, as a
/// codec gave them back, on their side of 0 again. x is F32, BF16 or F16.
void packSigns(cudaStream_t stream, const void *x, DataType type, void *bits, int64_t count, unsigned blocks);
void restoreSigns(cudaStream_t stream, const void *bits, void *x, DataType type, int64_t count, unsigned blocks);

#if defined(__CUDACC__)

/// By all threads of a block, 16 bytes at a time. Both begin at multiples of those.
template <typename Word> __device__ inline void moveElements(const Word *from, Word *to, int64_t count) {
  constexpr int vector = 16 / static_cast<int>(sizeof(Word));
  for (int64_t at = vector * static_cast<int64_t>(threadIdx.x); at < count; at += vector * blockThreads)
    if (at + vector <= count)
      *reinterpret_cast<uint4 *>(to + at) = *reinterpret_cast<const uint4 *>(from + at);
    else
      for (int64_t i = at; i < count; ++i)
        to[i] = from[i];
}

#endif

} // namespace sluice
