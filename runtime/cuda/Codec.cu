// SPDX-License-Identifier: Apache-2.0
// Half precision, int8 and fixed-rate zfp, of which a thread packs whole blocks, and the dispatch of all codecs. For
// the others threads take eight neighbouring values, so that sides of floats and halves move 16 bytes at a time; slots
// begin at multiples of 64 bytes. Copies that pack need no staging slot. int8 and zfp of halves widen them, pack
// floats, and round what comes back.
#include "runtime/cuda/Codec.h"

#include "runtime/PoolIndex.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Note.h"
#include "runtime/cuda/Storage.h"
#include "runtime/cuda/ZeroValue.h"
#include "runtime/kernels/CodecRules.h"
#include "runtime/kernels/ZfpBlock.h"

namespace sluice {

namespace {

/// Of the first refused value: its kernel's node as an address of this process (0: none); its bits, and above them
/// the codec that refused it.
__device__ unsigned long long refused[noteWords];

constexpr int64_t group = 8;

__device__ inline uint16_t toHalf(float x) { return float16Of(x).bits; }
__device__ inline float fromHalf(uint16_t h) { return widened(Float16{h}); }

__device__ inline void refuse(unsigned long long node, float value, Codec::Kind kind) {
  if (atomicCAS(&refused[0], 0ull, node) == 0)
    refused[1] = static_cast<unsigned long long>(kind) << 32 | bitsOfFloat(value);
}

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
      out[i] = toHalf(in[i]);
      if (overflowsHalf(in[i]))
        refuse(node, in[i], Codec::Fp16);
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

__global__ void unpackHalfKernel(const uint16_t *packed, float *x, int64_t count) {
  SLUICE_GRID_LOOP(g, (count + group - 1) / group) {
    const int64_t at = g * group, here = min(group, count - at);
    if (here < group) {
      for (int i = 0; i < here; ++i)
        x[at + i] = fromHalf(packed[at + i]);
      continue;
    }
    const uint4 eight = *reinterpret_cast<const uint4 *>(packed + at);
    uint16_t in[group];
    memcpy(in, &eight, sizeof eight);
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float4 *>(x + at + 4 * half) = make_float4(
          fromHalf(in[4 * half]), fromHalf(in[4 * half + 1]), fromHalf(in[4 * half + 2]), fromHalf(in[4 * half + 3]));
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

template <typename T>
__global__ void packZfpKernel(const T *x, uint16_t *packed, ZfpGrid grid, int rate, unsigned long long node) {
  const int64_t across = (grid.columns + 3) / 4;
  SLUICE_GRID_LOOP(at, across * ((grid.rows + 3) / 4)) {
    float block[zfp::values];
    loadBlock(x, grid, at / across * 4, at % across * 4, block);
    for (float value : block)
      if (overflowsZfp(value))
        return refuse(node, value, Codec::Zfp);
    zfp::packBlock(block, rate, packed + at * rate);
  }
}

/// Rounding could take the largest halves beyond their range.
__device__ inline void storeFinite(float *to, float x) { *to = x; }
__device__ inline void storeFinite(BFloat16 *to, float x) { store(to, x); }
__device__ inline void storeFinite(Float16 *to, float x) { store(to, fminf(fmaxf(x, -65504.0f), 65504.0f)); }

template <typename T> __global__ void unpackZfpKernel(const uint16_t *packed, T *x, ZfpGrid grid, int rate) {
  const int64_t across = (grid.columns + 3) / 4;
  SLUICE_GRID_LOOP(at, across * ((grid.rows + 3) / 4)) {
    float block[zfp::values];
    zfp::unpackBlock(packed + at * rate, rate, block);
    const int64_t row = at / across * 4, column = at % across * 4;
    for (int r = 0; r < 4 && row + r < grid.rows; ++r)
      for (int c = 0; c < 4 && column + c < grid.columns; ++c)
        storeFinite(x + (row + r) * grid.columns + column + c, block[4 * r + c]);
  }
}

/// On any memory that the device can reach. `blocks` at most.
void packHalf(cudaStream_t stream, const float *x, void *packed, int64_t count, const char *node, unsigned blocks) {
  blocks = std::min(blocks, blocksFor(count, group * blockThreads));
  packHalfKernel<<<blocks, blockThreads, 0, stream>>>(x, static_cast<uint16_t *>(packed), count,
                                                      reinterpret_cast<uintptr_t>(node));
}
void unpackHalf(cudaStream_t stream, const void *packed, float *x, int64_t count, unsigned blocks) {
  blocks = std::min(blocks, blocksFor(count, group * blockThreads));
  unpackHalfKernel<<<blocks, blockThreads, 0, stream>>>(static_cast<const uint16_t *>(packed), x, count);
}

void packZfp(cudaStream_t stream, const void *x, void *packed, const Tensor &like, int rate, const char *node) {
  const ZfpGrid grid = zfpGrid(like);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = packZfpKernel<T>;
    kernel<<<blocksFor(grid.blocks(), blockThreads), blockThreads, 0, stream>>>(
        static_cast<const T *>(x), static_cast<uint16_t *>(packed), grid, rate, reinterpret_cast<uintptr_t>(node));
  });
}
void unpackZfp(cudaStream_t stream, const void *packed, void *x, const Tensor &like, int rate) {
  const ZfpGrid grid = zfpGrid(like);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = unpackZfpKernel<T>;
    kernel<<<blocksFor(grid.blocks(), blockThreads), blockThreads, 0, stream>>>(static_cast<const uint16_t *>(packed),
                                                                                static_cast<T *>(x), grid, rate);
  });
}

void packInt8(cudaStream_t stream, const void *x, void *packed, const Tensor &like, const char *node) {
  const int64_t count = like.shape.elements();
  auto *values = static_cast<int8_t *>(packed);
  auto *largest = reinterpret_cast<float *>(values + int8Blocks(count) * int8Block);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = packBytesKernel<T>;
    kernel<<<blocksFor(count, group * blockThreads), blockThreads, 0, stream>>>(
        static_cast<const T *>(x), values, largest, count, reinterpret_cast<uintptr_t>(node));
  });
}
void unpackInt8(cudaStream_t stream, const void *packed, void *x, const Tensor &like) {
  const int64_t count = like.shape.elements();
  const auto *values = static_cast<const int8_t *>(packed);
  const auto *largest = reinterpret_cast<const float *>(values + int8Blocks(count) * int8Block);
  forStored(like.type, [&](auto *stored) {
    using T = std::remove_pointer_t<decltype(stored)>;
    const auto kernel = unpackBytesKernel<T>;
    kernel<<<blocksFor(count, group * blockThreads), blockThreads, 0, stream>>>(values, largest, static_cast<T *>(x),
                                                                                count);
  });
}

void checkCopy(const char *node, Codec codec, const Tensor &device, const Tensor &slot) {
  if (codec.kind != Codec::Fp16 && codec.kind != Codec::Zvc)
    throw std::invalid_argument("copies for '" + std::string(node) +
                                "' pack in a way that the cuda runtime does not have; fp16 and zvc are");
  if (slot.space == Space::Spill && (codec.kind != Codec::Zvc || static_cast<int64_t>(device.bytes()) < poolSmallest))
    throw std::invalid_argument("'" + std::string(node) + "' of " + std::to_string(device.bytes()) +
                                " bytes is packed into a pool, which takes zvc alone, of " +
                                std::to_string(poolSmallest) + " bytes at least");
  checkPacked(node, codec, device, slot, true);
}

constexpr unsigned all = ~0u;

PackedHome homeOf(const Stream &stream, const Tensor &packed, const char *node) {
  if (packed.space != Space::Spill)
    return {static_cast<char *>(stream.address(packed))};
  if (!stream.session.packedPool())
    throw std::invalid_argument("'" + std::string(node) + "' is packed into a pool, and this session has none");
  return {nullptr, stream.session.packedPool(), packed};
}

} // namespace

[[noreturn]] static void raiseRefused(const unsigned long long *note) {
  throw valueRefused(static_cast<Codec::Kind>(note[1] >> 32), floatOfBits(static_cast<uint32_t>(note[1])),
                     notedNode(note));
}

Packing::Packing(Node node, Codec codec, const Tensor &x) : Kernel(node), codec(codec), x(x) {
  const CodecFacts *facts = factsOf(codec);
  if (!facts || !facts->onDevice || !(x.type == DataType::F32 || (isHalf(x.type) && codec.kind != Codec::Fp16)))
    throw std::invalid_argument("'" + std::string(node) + "' cannot be packed on the device");
  watchNotes(refused, raiseRefused);
}

// Records count a half as the float that its kernels make of it, so that rates are those of floats.
static size_t bytesAsFloats(const Tensor &x) { return 4 * static_cast<size_t>(x.shape.elements()); }

void Packing::encode(Stream &stream, const Tensor &from, const Tensor &packed) const {
  checkPacked(node, codec, from, packed, true);
  const void *raw = stream.address(from);
  void *to = stream.address(packed);
  const int64_t elements = x.shape.elements();
  void *form = static_cast<char *>(to) + (codec.mask ? signBytes(elements) : 0);
  auto work = [&] {
    if (codec.mask)
      packSigns(native(stream), raw, x.type, to, elements);
    if (codec.kind == Codec::Zfp)
      packZfp(native(stream), raw, form, x, codec.rate, node);
    else if (codec.kind == Codec::Int8)
      packInt8(native(stream), raw, form, x, node);
    else
      packHalf(native(stream), static_cast<const float *>(raw), form, elements, node, all);
  };
  stream.launch(node.as(OpRole::Encode, codec), encodeName(codec), work, bytesAsFloats(x));
}

void Packing::decode(Stream &stream, const Tensor &packed, const Tensor &to) const {
  checkPacked(node, codec, to, packed, true);
  const void *from = stream.address(packed);
  void *raw = stream.address(to);
  const int64_t elements = x.shape.elements();
  const void *form = static_cast<const char *>(from) + (codec.mask ? signBytes(elements) : 0);
  auto work = [&] {
    if (codec.kind == Codec::Zfp)
      unpackZfp(native(stream), form, raw, x, codec.rate);
    else if (codec.kind == Codec::Int8)
      unpackInt8(native(stream), form, raw, x);
    else
      unpackHalf(native(stream), form, static_cast<float *>(raw), elements, all);
    if (codec.mask)
      restoreSigns(native(stream), from, raw, x.type, elements);
  };
  stream.launch(node.as(OpRole::Decode, codec), decodeName(codec), work, bytesAsFloats(x));
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkCopy(node, codec, from, to);
  watchNotes(refused, raiseRefused);
  const void *x = stream.address(from);
  const PackedHome home = homeOf(stream, to, node);
  const bool zvc = codec.kind == Codec::Zvc;
  auto work = [&] {
    if (zvc)
      packZeroValues(native(stream), x, home, from, node);
    else
      packHalf(native(stream), static_cast<const float *>(x), home.slot, from.shape.elements(), node, copyBlocks);
  };
  stream.launch(node.as(OpRole::Offload, codec), zvc ? "copy to host zvc" : "copy to host fp16", work, from.bytes());
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkCopy(node, codec, to, from);
  const PackedHome home = homeOf(stream, from, node);
  void *x = stream.address(to);
  const bool zvc = codec.kind == Codec::Zvc;
  auto work = [&] {
    if (zvc)
      unpackZeroValues(native(stream), home, x, to);
    else
      unpackHalf(native(stream), home.slot, static_cast<float *>(x), to.shape.elements(), copyBlocks);
  };
  stream.launch(node.as(OpRole::Prefetch, codec), zvc ? "copy to device zvc" : "copy to device fp16", work, to.bytes());
}

} // namespace sluice
