// SPDX-License-Identifier: Apache-2.0
// Masks, half precision and int8, and the dispatch of all codecs to streams. Work on a copy stream runs beside compute:
// the pool is then mostly taken, and parallel loops run on the stream's own thread.
#include "runtime/host/Codec.h"

#include "runtime/host/ElementTypes.h"
#include "runtime/host/PackedPool.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/CodecRules.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace sluice {

namespace {

constexpr int64_t grain = int64_t(1) << 15; ///< elements of a task, a multiple of 64

template <typename T, typename Keeps> void packBits(const T *x, int64_t elements, uint64_t *bits, Keeps keeps) {
  parallelRanges(elements, grain, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += 64) {
      uint64_t word = 0;
      for (int half = 0; half < 2; ++half) {
        const T *from = x + at + 32 * half;
        const int count = static_cast<int>(std::max<int64_t>(0, std::min<int64_t>(32, end - at - 32 * half)));
        uint32_t lanes = 0;
        for (int i = 0; i < count; ++i)
          lanes |= static_cast<uint32_t>(keeps(widened(from[i]))) << i;
        word |= static_cast<uint64_t>(lanes) << (32 * half);
      }
      bits[at / 64] = word;
    }
  });
}

#if defined(__F16C__)
uint16_t toHalf(float x) { return static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)); }
float fromHalf(uint16_t h) { return _cvtsh_ss(h); }
#else
uint16_t toHalf(float x) { return halfOfFloat(x); }
float fromHalf(uint16_t h) { return floatOfHalf(h); }
#endif

/// A block's largest magnitude; its bits tell whether it is finite.
float packBlock(const float *x, int8_t *packed) {
  uint32_t bits = 0;
  for (int i = 0; i < int8Block; ++i)
    bits = std::max(bits, magnitudeBits(x[i]));
  const float largest = floatOfBits(bits), divisor = bits ? largest : 1.0f;
  if (bits < 0x7f800000)
    for (int i = 0; i < int8Block; ++i)
      packed[i] = int8Of(x[i], divisor);
  return largest;
}

template <typename T> void packInt8(const T *x, int64_t elements, void *packed, const char *node) {
  auto *values = static_cast<int8_t *>(packed);
  auto *largest = reinterpret_cast<float *>(values + int8Block * int8Blocks(elements));
  std::atomic<int64_t> refused{-1};
  parallelRanges(int8Blocks(elements), grain / int8Block, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = block * int8Block, here = std::min(int8Block, elements - at);
      float floats[int8Block] = {};
      for (int64_t i = 0; i < here; ++i)
        floats[i] = widened(x[at + i]);
      largest[block] = packBlock(floats, values + at);
      if (magnitudeBits(largest[block]) >= 0x7f800000)
        refused = block;
    }
  });
  if (refused >= 0)
    throw valueRefused(Codec::Int8, largest[refused.load()], node);
}

template <typename T> void unpackInt8(const void *packed, int64_t elements, T *x) {
  const auto *values = static_cast<const int8_t *>(packed);
  const auto *largest = reinterpret_cast<const float *>(values + int8Block * int8Blocks(elements));
  parallelRanges(int8Blocks(elements), grain / int8Block, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      for (int64_t i = block * int8Block; i < std::min(elements, (block + 1) * int8Block); ++i)
        store(x + i, floatOfInt8(values[i], largest[block]));
  });
}

template <typename T> void packBFloat16(const T *x, int64_t elements, void *packed, const char *node) {
  auto *out = static_cast<uint16_t *>(packed);
  std::atomic<int64_t> refused{-1};
  parallelRanges(elements, grain, [&](int64_t begin, int64_t end) {
    int overflow = 0;
    for (int64_t i = begin; i < end; ++i) {
      out[i] = bfloat16Of(widened(x[i])).bits;
      overflow |= overflowsBFloat16(widened(x[i]));
    }
    for (int64_t i = begin; overflow && i < end; ++i)
      if (overflowsBFloat16(widened(x[i])))
        refused = i;
  });
  if (refused >= 0)
    throw valueRefused(Codec::Bf16, widened(x[refused.load()]), node);
}

template <typename T> void unpackBFloat16(const void *packed, int64_t elements, T *x) {
  const auto *in = static_cast<const uint16_t *>(packed);
  parallelRanges(elements, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      store(x + i, widened(BFloat16{in[i]}));
  });
}

template <typename T> void packSigns(const T *x, int64_t elements, uint64_t *bits) {
  packBits(x, elements, bits, [](float v) { return isAbove(v); });
  auto *below = reinterpret_cast<uint8_t *>(bits + signBlocks(elements));
  parallelRanges(signBlocks(elements), grain / signBlock, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const T *from = x + block * signBlock;
      const int64_t count = std::min(signBlock, elements - block * signBlock);
      int found = 0;
      for (int64_t i = 0; i < count; ++i)
        found |= widened(from[i]) < 0;
      below[block] = static_cast<uint8_t>(found);
    }
  });
}

template <typename T> void restoreSigns(const uint64_t *bits, int64_t elements, T *x) {
  const auto *below = reinterpret_cast<const uint8_t *>(bits + signBlocks(elements));
  parallelRanges(signBlocks(elements), grain / signBlock, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      T *to = x + block * signBlock;
      const int64_t count = std::min(signBlock, elements - block * signBlock);
      const uint64_t above = bits[block];
      const bool mixed = below[block] != 0;
      for (int64_t i = 0; i < count; ++i)
        store(to + i, withSign(widened(to[i]), above >> i & 1, mixed, smallestNormal(DataType::F32))); // bf16's, too
    }
  });
}

/// Null when the packed form has a slot of its own.
PackedPool *poolOf(const Session &session, const Tensor &packed, const char *node) {
  if (packed.space != Space::Spill)
    return nullptr;
  if (!session.packedPool())
    throw std::invalid_argument("'" + std::string(node) + "' is packed into a pool, and this session has none");
  return session.packedPool();
}

} // namespace

void packHalf(const float *x, int64_t elements, void *packed, const char *node) {
  auto *out = static_cast<uint16_t *>(packed);
  std::atomic<int64_t> refused{-1};
  parallelRanges(elements, grain, [&](int64_t begin, int64_t end) {
    int overflow = 0;
    int64_t i = begin;
#if defined(__F16C__)
    for (; i + 8 <= end; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < end; ++i)
      out[i] = toHalf(x[i]);
    for (i = begin; i < end; ++i) {
      const float magnitude = x[i] < 0 ? -x[i] : x[i];
      overflow |= (magnitude >= 65520.0f) & (magnitude <= std::numeric_limits<float>::max());
    }
    if (overflow)
      for (i = begin; i < end; ++i)
        if (overflowsHalf(x[i]))
          refused = i;
  });
  if (refused >= 0)
    throw halfRefused(x[refused.load()], node);
}

void unpackHalf(const void *packed, int64_t elements, float *x) {
  const auto *in = static_cast<const uint16_t *>(packed);
  parallelRanges(elements, grain, [=](int64_t begin, int64_t end) {
    int64_t i = begin;
#if defined(__F16C__)
    for (; i + 8 <= end; i += 8)
      _mm256_storeu_ps(x + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i))));
#endif
    for (; i < end; ++i)
      x[i] = fromHalf(in[i]);
  });
}

void Mask::encode(Stream &stream, const Tensor &x, const Tensor &bits) const {
  auto *to = stream.data<uint64_t>(bits);
  forStored(node, x.type, [&](auto *type) {
    const auto *from = stream.data<const Stored<decltype(type)>>(x);
    stream.launch(node.as(OpRole::Encode), "encode mask", [this, from, to] {
      if (positive)
        packBits(from, elements, to, [](float v) { return v > 0; });
      else
        packBits(from, elements, to, [](float v) { return !(v <= 0); });
    });
  });
}

Packing::Packing(Node node, Codec codec, const Tensor &x) : Kernel(node), codec(codec), x(x) {
  const CodecFacts *facts = factsOf(codec);
  const bool taken = x.type == DataType::F32 || (x.type == DataType::BF16 && codec.kind != Codec::Fp16);
  if (!facts || !facts->onDevice || !taken)
    throw std::invalid_argument("'" + std::string(node) + "' cannot be packed on the device");
}

// fp16 packs floats alone, which checkPacked() and the constructor know.
static void packFloats(const float *x, int64_t elements, void *packed, const char *node) {
  packHalf(x, elements, packed, node);
}
static void packFloats(const BFloat16 *, int64_t, void *, const char *) {}
static void unpackFloats(const void *packed, int64_t elements, float *x) { unpackHalf(packed, elements, x); }
static void unpackFloats(const void *, int64_t, BFloat16 *) {}

template <typename T> void packForm(Codec codec, const T *x, const Tensor &like, void *packed, const char *node) {
  const int64_t elements = like.shape.elements();
  void *form = static_cast<char *>(packed) + (codec.mask ? signBytes(elements) : 0);
  if (codec.mask)
    packSigns(x, elements, static_cast<uint64_t *>(packed));
  if (codec.kind == Codec::Zfp)
    packZfp(x, zfpGrid(like), codec.bits(), form, node);
  else if (codec.kind == Codec::Int8)
    packInt8(x, elements, form, node);
  else if (codec.kind == Codec::Bf16)
    packBFloat16(x, elements, form, node);
  else
    packFloats(x, elements, form, node);
}

template <typename T> void unpackForm(Codec codec, const void *packed, T *x, const Tensor &like) {
  const int64_t elements = like.shape.elements();
  const void *form = static_cast<const char *>(packed) + (codec.mask ? signBytes(elements) : 0);
  if (codec.kind == Codec::Zfp)
    unpackZfp(form, zfpGrid(like), codec.bits(), x);
  else if (codec.kind == Codec::Int8)
    unpackInt8(form, elements, x);
  else if (codec.kind == Codec::Bf16)
    unpackBFloat16(form, elements, x);
  else
    unpackFloats(form, elements, x);
  if (codec.mask)
    restoreSigns(static_cast<const uint64_t *>(packed), elements, x);
}

template void packForm(Codec, const float *, const Tensor &, void *, const char *);
template void packForm(Codec, const BFloat16 *, const Tensor &, void *, const char *);
template void unpackForm(Codec, const void *, float *, const Tensor &);
template void unpackForm(Codec, const void *, BFloat16 *, const Tensor &);

/// Records count a half as the float that its kernels make of it, so that rates are those of floats.
static size_t bytesAsFloats(const Tensor &x) { return sizeof(float) * static_cast<size_t>(x.shape.elements()); }

void Packing::encode(Stream &stream, const Tensor &from, const Tensor &packed) const {
  checkPacked(node, codec, from, packed, true);
  void *to = stream.address(packed);
  forStored(node, from.type, [&](auto *type) {
    const auto *raw = stream.data<const Stored<decltype(type)>>(from);
    auto work = [this, raw, to] { packForm(codec, raw, x, to, node); };
    stream.launch(node.as(OpRole::Encode, codec), encodeName(codec), work, bytesAsFloats(x));
  });
}

void Packing::decode(Stream &stream, const Tensor &packed, const Tensor &to) const {
  checkPacked(node, codec, to, packed, true);
  const void *from = stream.address(packed);
  forStored(node, to.type, [&](auto *type) {
    auto *raw = stream.data<Stored<decltype(type)>>(to);
    auto work = [this, from, raw] { unpackForm(codec, from, raw, x); };
    stream.launch(node.as(OpRole::Decode, codec), decodeName(codec), work, bytesAsFloats(x));
  });
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkPacked(node, codec, from, to, true);
  Session &session = stream.session;
  PackedPool *pool = poolOf(session, to, node);
  void *slot = pool ? nullptr : stream.address(to);
  const int64_t elements = from.shape.elements();
  forStored(node, from.type, [&](auto *type) {
    const auto *x = stream.data<const Stored<decltype(type)>>(from);
    auto work = [=, &session] {
      if (pool)
        session.notePacked(from.bytes(), pool->store(to, x, elements));
      else if (codec.kind == Codec::Zvc)
        session.notePacked(from.bytes(), static_cast<size_t>(packZeroValues(x, elements, slot)));
      else
        packForm(codec, x, from, slot, node);
    };
    stream.launch(node.as(OpRole::Offload, codec), copyOutName(codec), work, from.bytes());
  });
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkPacked(node, codec, to, from, true);
  const PackedPool *pool = poolOf(stream.session, from, node);
  const void *slot = pool ? nullptr : stream.address(from);
  const int64_t elements = to.shape.elements();
  forStored(node, to.type, [&](auto *type) {
    auto *x = stream.data<Stored<decltype(type)>>(to);
    auto work = [=] {
      if (pool)
        pool->load(from, x, elements, node);
      else if (codec.kind == Codec::Zvc)
        unpackZeroValues(slot, from.bytes(), elements, x, node);
      else
        unpackForm(codec, slot, x, to);
    };
    stream.launch(node.as(OpRole::Prefetch, codec), copyBackName(codec), work, to.bytes());
  });
}

} // namespace sluice
