// SPDX-License-Identifier: Apache-2.0
// fp16, bf16, int8 and fixed-rate zfp, of which a thread packs whole blocks. For the others threads take eight
// neighbouring values, so that sides of floats and halves move 16 bytes at a time; slots begin at multiples of 64
// bytes. int8 and zfp of halves widen them, pack floats, and round what comes back.
#include "runtime/cuda/Codec.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Note.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/CodecRules.h"
#include "runtime/kernels/ZfpBlock.h"

namespace sluice {

namespace {

/// Of the first refused value: its kernel's node as an address of this process (0: none); its bits, and above them
/// the codec that refused it.
__device__ unsigned long long refused[noteWords];

constexpr int64_t group = 8;
constexpr int zfpMostBits = 31; ///< a value, and words of 16 bits a block

/// The 16 bits that fp16 or bf16 makes of a float, whether that is refused, and the float that they are.
template <Codec::Kind kind> __device__ inline uint16_t narrowed(float x) {
  return kind == Codec::Bf16 ? bfloat16Of(x).bits : float16Of(x).bits;
}
template <Codec::Kind kind> __device__ inline bool overflows(float x) {
  return kind == Codec::Bf16 ? overflowsBFloat16(x) : overflowsHalf(x);
}
template <Codec::Kind kind> __device__ inline float widenedFrom(uint16_t bits) {
  return kind == Codec::Bf16 ? widened(BFloat16{bits}) : widened(Float16{bits});
}

__device__ inline void refuse(unsigned long long node, float value, Codec::Kind kind) {
  if (atomicCAS(&refused[0], 0ull, node) == 0)
    refused[1] = static_cast<unsigned long long>(kind) << 32 | bitsOfFloat(value);
}

template <Codec::Kind kind>
__global__ void packHalfKernel(const float *x, uint16_t *packed, int64_t count, unsigned long long node) {
  SLUICE_GRID_LOOP(g, (count + group - 1) / group) {
    float in[group] = {};
    const int64_t at = g * group, here = min(group, count - at);
    if (here == group) {
      const float4 a = *reinterpret_cast<const float4 *>(x + at), b = *reinterpret_cast<const float4 *>(x + at + 4);
      in[0] = a.x, in[1] = a.y, in[2] = a.z, in[3] = a.w, in[4] = b.x, in[5] = b.y, in[6] = b.z, in[7] = b.w;
    } else {
      for (int i = 0; i < here; ++i)
        in[i] = x[at + i];
    }
    uint16_t out[group];
    for (int i = 0; i < group; ++i) {
      out[i] = narrowed<kind>(in[i]);
      if (overflows<kind>(in[i]))
        refuse(node, in[i], kind);
    }
    if (here == group) {
      uint4 eight;
      memcpy(&eight, out, sizeof eight);
      *reinterpret_cast<uint4 *>(packed + at) = eight;
    } else {
      for (int i = 0; i < here; ++i)
        packed[at + i] = out[i];
    }
  }
}

template <Codec::Kind kind> __global__ void unpackHalfKernel(const uint16_t *packed, float *x, int64_t count) {
  SLUICE_GRID_LOOP(g, (count + group - 1) / group) {
    const int64_t at = g * group, here = min(group, count - at);
    if (here < group) {
      for (int i = 0; i < here; ++i)
        x[at + i] = widenedFrom<kind>(packed[at + i]);
      continue;
    }
    const uint4 eight = *reinterpret_cast<const uint4 *>(packed + at);
    uint16_t in[group];
    memcpy(in, &eight, sizeof eight);
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float4 *>(x + at + 4 * half) =
          make_float4(widenedFrom<kind>(in[4 * half]), widenedFrom<kind>(in[4 * half + 1]),
                      widenedFrom<kind>(in[4 * half + 2]), widenedFrom<kind>(in[4 * half + 3]));
  }
}

/// Eight neighbouring threads share a block and find its largest magnitude together. All threads of a warp go round
/// equally often. The last block is stored whole.
template <typename T>
__global__ void packBytesKernel(const T *x, int8_t *packed, float *largest, int64_t count, unsigned long long node) {
  const int64_t groups = int8Blocks(count) * (int8Block / group), whole = (groups + 31) / 32 * 32;
  SLUICE_GRID_LOOP(g, whole) {
    float in[group] = {};
    for (int64_t i = 0; i < group && g * group + i < count; ++i)
      in[i] = widened(x[g * group + i]);
    uint32_t bits = 0;
    for (float value : in)
      bits = max(bits, magnitudeBits(value));
    for (int distance = 4; distance > 0; distance /= 2)
      bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, distance));
    const bool finite = bits < 0x7f800000;
    if (!finite)
      refuse(node, floatOfBits(bits), Codec::Int8);
    int8_t out[group];
    for (int i = 0; i < group; ++i)
      out[i] = finite ? int8Of(in[i], bits ? floatOfBits(bits) : 1.0f) : 0;
    if (g < groups) {
      uint2 eight;
      memcpy(&eight, out, sizeof eight);
      *reinterpret_cast<uint2 *>(packed + g * group) = eight;
      largest[g / (int8Block / group)] = floatOfBits(bits);
    }
  }
}

template <typename T>
__global__ void unpackBytesKernel(const int8_t *packed, const float *largest, T *x, int64_t count) {
  SLUICE_GRID_LOOP(g, (count + group - 1) / group) {
    const uint2 eight = *reinterpret_cast<const uint2 *>(packed + g * group);
    int8_t in[group];
    memcpy(in, &eight, sizeof eight);
    const float scale = largest[g / (int8Block / group)];
    for (int64_t i = 0; i < group && g * group + i < count; ++i)
      store(x + g * group + i, floatOfInt8(in[i], scale));
  }
}

/// The part of block (at % across, at / across) that the grid has; the rest repeats it.
template <typename T>
__device__ void loadBlock(const T *x, const ZfpGrid &grid, int64_t row, int64_t column, float (&block)[zfp::values]) {
  const int rows = static_cast<int>(min(int64_t(4), grid.rows - row)),
            columns = static_cast<int>(min(int64_t(4), grid.columns - column));
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c)
      block[4 * r + c] = widened(x[(row + r) * grid.columns + column + c]);
    zfp::padLine(block + 4 * r, columns, 1);
  }
  for (int c = 0; c < 4; ++c)
    zfp::padLine(block + c, rows, 4);
}

/// A block of threads packs a tile of as many blocks of values and then writes it out in whole lines, because copies
/// cross the link with it; `packed` is a multiple of 16 bytes.
template <typename T>
__global__ void packZfpKernel(const T *x, uint16_t *packed, ZfpGrid grid, int rate, unsigned long long node) {
  __align__(16) __shared__ uint16_t tile[blockThreads * zfpMostBits];
  const int64_t across = (grid.columns + 3) / 4, blocks = across * ((grid.rows + 3) / 4);
  for (int64_t first = blockIdx.x * int64_t(blockThreads); first < blocks; first += gridDim.x * int64_t(blockThreads)) {
    const int64_t at = first + threadIdx.x;
    if (at < blocks) {
      float block[zfp::values];
      loadBlock(x, grid, at / across * 4, at % across * 4, block);
      bool fits = true;
      for (float value : block)
        if (fits && overflowsZfp(value)) {
          refuse(node, value, Codec::Zfp);
          fits = false;
        }
      if (fits)
        zfp::packBlock(block, rate, tile + threadIdx.x * rate);
    }
    __syncthreads();
    moveElements(tile, packed + first * rate, min(int64_t(blockThreads), blocks - first) * rate);
    __syncthreads(); // all have read the tile, which the next one overwrites
  }
}

/// Rounding could take the largest halves beyond their range.
__device__ inline void storeFinite(float *to, float x) { *to = x; }
__device__ inline void storeFinite(BFloat16 *to, float x) { store(to, x); }
__device__ inline void storeFinite(Float16 *to, float x) { store(to, fminf(fmaxf(x, -65504.0f), 65504.0f)); }

template <typename T> __global__ void unpackZfpKernel(const uint16_t *packed, T *x, ZfpGrid grid, int rate) {
  __align__(16) __shared__ uint16_t tile[blockThreads * zfpMostBits];
  const int64_t across = (grid.columns + 3) / 4, blocks = across * ((grid.rows + 3) / 4);
  for (int64_t first = blockIdx.x * int64_t(blockThreads); first < blocks; first += gridDim.x * int64_t(blockThreads)) {
    moveElements(packed + first * rate, tile, min(int64_t(blockThreads), blocks - first) * rate);
    __syncthreads();
    const int64_t at = first + threadIdx.x;
    if (at < blocks) {
      float block[zfp::values];
      zfp::unpackBlock(tile + threadIdx.x * rate, rate, block);
      const int64_t row = at / across * 4, column = at % across * 4;
      for (int r = 0; r < 4 && row + r < grid.rows; ++r)
        for (int c = 0; c < 4 && column + c < grid.columns; ++c)
          storeFinite(x + (row + r) * grid.columns + column + c, block[4 * r + c]);
    }
    __syncthreads(); // all have read the tile, which the next one overwrites
  }
}

// On any memory that the device can reach, by so many blocks at most.
template <Codec::Kind kind>
void packHalf(cudaStream_t stream, const float *x, void *packed, int64_t count, const char *node, unsigned blocks) {
  blocks = std::min(blocks, blocksFor(count, group * blockThreads));
  const auto kernel = packHalfKernel<kind>;
  kernel<<<blocks, blockThreads, 0, stream>>>(x, static_cast<uint16_t *>(packed), count,
                                              reinterpret_cast<uintptr_t>(node));
}
template <Codec::Kind kind>
void unpackHalf(cudaStream_t stream, const void *packed, float *x, int64_t count, unsigned blocks) {
  blocks = std::min(blocks, blocksFor(count, group * blockThreads));
  const auto kernel = unpackHalfKernel<kind>;
  kernel<<<blocks, blockThreads, 0, stream>>>(static_cast<const uint16_t *>(packed), x, count);
}

void packZfp(cudaStream_t stream, const void *x, void *packed, const Tensor &like, int rate, const char *node,
             unsigned blocks) {
  const ZfpGrid grid = zfpGrid(like);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = packZfpKernel<T>;
    kernel<<<std::min(blocks, blocksFor(grid.blocks(), blockThreads)), blockThreads, 0, stream>>>(
        static_cast<const T *>(x), static_cast<uint16_t *>(packed), grid, rate, reinterpret_cast<uintptr_t>(node));
  });
}
void unpackZfp(cudaStream_t stream, const void *packed, void *x, const Tensor &like, int rate, unsigned blocks) {
  const ZfpGrid grid = zfpGrid(like);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = unpackZfpKernel<T>;
    kernel<<<std::min(blocks, blocksFor(grid.blocks(), blockThreads)), blockThreads, 0, stream>>>(
        static_cast<const uint16_t *>(packed), static_cast<T *>(x), grid, rate);
  });
}

void packInt8(cudaStream_t stream, const void *x, void *packed, const Tensor &like, const char *node, unsigned blocks) {
  const int64_t count = like.shape.elements();
  auto *values = static_cast<int8_t *>(packed);
  auto *largest = reinterpret_cast<float *>(values + int8Blocks(count) * int8Block);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = packBytesKernel<T>;
    kernel<<<std::min(blocks, blocksFor(count, group * blockThreads)), blockThreads, 0, stream>>>(
        static_cast<const T *>(x), values, largest, count, reinterpret_cast<uintptr_t>(node));
  });
}
void unpackInt8(cudaStream_t stream, const void *packed, void *x, const Tensor &like, unsigned blocks) {
  const int64_t count = like.shape.elements();
  const auto *values = static_cast<const int8_t *>(packed);
  const auto *largest = reinterpret_cast<const float *>(values + int8Blocks(count) * int8Block);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = unpackBytesKernel<T>;
    kernel<<<std::min(blocks, blocksFor(count, group * blockThreads)), blockThreads, 0, stream>>>(
        values, largest, static_cast<T *>(x), count);
  });
}

} // namespace

[[noreturn]] static void raiseRefused(const unsigned long long *note) {
  throw valueRefused(static_cast<Codec::Kind>(note[1] >> 32), floatOfBits(static_cast<uint32_t>(note[1])),
                     notedNode(note));
}

void watchRefusedValues() { watchNotes(refused, raiseRefused); }

void packForm(cudaStream_t stream, Codec codec, const void *x, const Tensor &like, void *packed, const char *node,
              unsigned blocks) {
  const int64_t elements = like.shape.elements();
  void *form = static_cast<char *>(packed) + (codec.mask ? signBytes(elements) : 0);
  if (codec.mask)
    packSigns(stream, x, like.type, packed, elements, blocks);
  if (codec.kind == Codec::Zfp)
    packZfp(stream, x, form, like, codec.bits(), node, blocks);
  else if (codec.kind == Codec::Int8)
    packInt8(stream, x, form, like, node, blocks);
  else if (codec.kind == Codec::Bf16)
    packHalf<Codec::Bf16>(stream, static_cast<const float *>(x), form, elements, node, blocks);
  else
    packHalf<Codec::Fp16>(stream, static_cast<const float *>(x), form, elements, node, blocks);
}

void unpackForm(cudaStream_t stream, Codec codec, const void *packed, void *x, const Tensor &like, unsigned blocks) {
  const int64_t elements = like.shape.elements();
  const void *form = static_cast<const char *>(packed) + (codec.mask ? signBytes(elements) : 0);
  if (codec.kind == Codec::Zfp)
    unpackZfp(stream, form, x, like, codec.bits(), blocks);
  else if (codec.kind == Codec::Int8)
    unpackInt8(stream, form, x, like, blocks);
  else if (codec.kind == Codec::Bf16)
    unpackHalf<Codec::Bf16>(stream, form, static_cast<float *>(x), elements, blocks);
  else
    unpackHalf<Codec::Fp16>(stream, form, static_cast<float *>(x), elements, blocks);
  if (codec.mask)
    restoreSigns(stream, packed, x, like.type, elements, blocks);
}

} // namespace sluice
