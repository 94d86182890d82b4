// SPDX-License-Identifier: Apache-2.0
// How a tensor is packed: sizes, and the kernels that pack and unpack. Sizes follow from shape and layout alone, so
// that the compiler can plan them; what zvc saves within its slot is only known at run time. Names: CodecTable.h.
#pragma once

#include "runtime/CodecTable.h"
#include "runtime/Kernels.h"

namespace sluice {

/// A packed tensor cannot hold this value, or a rebuilt one has lost its digits, and nothing sensible would come of
/// going on (exit status 5).
struct ValueNotStorable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The tensor as zfp sees it: `rows` rows of `columns` neighbours in memory. Among the splits of the physical order,
/// the one that pads least to blocks of 4x4.
struct ZfpGrid {
  int64_t columns = 0, rows = 0;
  constexpr int64_t blocksAcross() const { return (columns + 3) / 4; }
  constexpr int64_t blocks() const { return blocksAcross() * ((rows + 3) / 4); }
};

inline ZfpGrid zfpGrid(const Tensor &x) {
  const int64_t total = x.shape.elements();
  ZfpGrid best{total, 1};
  int64_t columns = 1;
  for (int i = x.shape.rank - 1; i >= 0; --i) {
    columns *= x.shape[dimensionAt(i, x.shape.rank, x.layout)];
    const ZfpGrid grid{columns, total / columns};
    if (grid.blocks() < best.blocks() || (grid.blocks() == best.blocks() && grid.columns < best.columns))
      best = grid;
  }
  return best;
}

/// zvc cuts a tensor of floats or halves into parts of so many bytes, each packed on its own. First comes a table of
/// 64-bit integers, its own bytes and where each part ends; then the parts, in a slot each where its raw bytes would
/// begin, in a pool one after the other. A part is a word of bits for every 32 elements, the first one's lowest, 1
/// where the element is not zero, as many words as make whole 16 bytes, then those elements; or its raw bytes where
/// these are no more. So a slot's bytes follow from the raw bytes, whatever these are of.
constexpr int64_t zvcPart = int64_t(1) << 17;
constexpr int64_t zvcParts(int64_t raw) { return (raw + zvcPart - 1) / zvcPart; }
constexpr int64_t zvcTableBytes(int64_t raw) { return (8 * (zvcParts(raw) + 1) + 63) / 64 * 64; }
constexpr int64_t zvcMaskBytes(int64_t elements) { return (elements + 127) / 128 * 16; }

/// Values that share a scale. After the integers of all blocks, the last one filled up with zeros, lie their scales.
constexpr int64_t int8Block = 64;
constexpr int64_t int8Blocks(int64_t elements) { return (elements + int8Block - 1) / int8Block; }

/// Bytes of the packed form without the mask that may precede it.
inline int64_t formBytes(Codec codec, const Tensor &x) {
  const int64_t elements = x.shape.elements();
  switch (codec.kind) {
  case Codec::None:
    return static_cast<int64_t>(x.bytes());
  case Codec::Fp16:
  case Codec::Bf16:
    return 2 * elements;
  case Codec::Zvc:
    return zvcTableBytes(static_cast<int64_t>(x.bytes())) + static_cast<int64_t>(x.bytes());
  case Codec::Zfp:
    return (zfpGrid(x).blocks() * 16 * codec.bits() + 63) / 64 * 8;
  case Codec::Int8:
    return int8Blocks(elements) * (int8Block + 4);
  case Codec::Mask:
  case Codec::Argmax:
  case Codec::Counter: // tensors of their own
    break;
  }
  return 0;
}

/// Of a codec with a mask. Values in blocks of 64; first comes the mask, a word of bits for each block, !(x <= 0), the
/// first value's lowest, then a byte for each block, 1 where a value is below 0, then, at a multiple of 64 bytes, the
/// packed form.
constexpr int64_t signBlock = 64;
constexpr int64_t signBlocks(int64_t elements) { return (elements + signBlock - 1) / signBlock; }
constexpr int64_t signBytes(int64_t elements) { return (9 * signBlocks(elements) + 63) / 64 * 64; }

/// Bytes of the slot that holds `x` packed.
inline int64_t packedBytes(Codec codec, const Tensor &x) {
  return (codec.mask ? signBytes(x.shape.elements()) : 0) + formBytes(codec, x);
}

/// One bit an element: !(x <= 0), or x > 0 with `positive` (NaN differs). What gradients of ReLU and LeakyReLU ask.
class Mask : public Kernel {
public:
  Mask(Node node, int64_t elements, bool positive) : Kernel(node), elements(elements), positive(positive) {}
  void encode(Stream &, const Tensor &x, const Tensor &bits) const;

private:
  int64_t elements;
  bool positive;
};

/// Codecs that pack in device memory. `packed` is U8 and packedBytes(codec, x) long; another size is a
/// std::invalid_argument. x is F32, or of halves where the codec takes them (CodecTable.h). A value that the codec
/// refuses ends the step with ValueNotStorable.
class Packing : public Kernel {
public:
  Packing(Node node, Codec codec, const Tensor &x);
  void encode(Stream &, const Tensor &x, const Tensor &packed) const;
  void decode(Stream &, const Tensor &packed, const Tensor &x) const;

private:
  Codec codec;
  Tensor x;
};

/// Copies between the arenas that pack on the way out and unpack on the way back, with any codec of floats. The tensor
/// outside the device is U8 and packedBytes(codec, device tensor) long, a slot of the host arena or, with a pool, of
/// the spill arena; types and errors as Packing.
void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec);
void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec);

/// Host alone, the same between the device arena and the file of storage, with codecs that pack in pieces. The
/// slot holds the packed forms of 2^18 elements each, one after the other; with zvc first a table of 64-bit integers,
/// how many bytes each such piece has, and then each where its raw bytes would begin: its raw bytes, or if those are
/// fewer, zvc's form of it without gaps, of which nothing else is written.
void copyToStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec);
void copyFromStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec);

} // namespace sluice
