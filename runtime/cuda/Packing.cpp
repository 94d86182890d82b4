// SPDX-License-Identifier: Apache-2.0
// Which kernels pack and unpack for codecs, in device memory and in copies. Copies that pack need no staging slot:
// their kernels read and write the locked host arena.
#include "runtime/PoolIndex.h"
#include "runtime/cuda/Codec.h"
#include "runtime/cuda/ZeroValue.h"
#include "runtime/kernels/CodecRules.h"

namespace sluice {

namespace {

void checkCopy(const char *node, Codec codec, const Tensor &device, const Tensor &slot) {
  if (codec.kind == Codec::None)
    throw std::invalid_argument("copies for '" + std::string(node) + "' pack with no codec");
  if (slot.space == Space::Spill && (codec.kind != Codec::Zvc || static_cast<int64_t>(device.bytes()) < poolSmallest))
    throw std::invalid_argument("'" + std::string(node) + "' of " + std::to_string(device.bytes()) +
                                " bytes is packed into a pool, which takes zvc alone, of " +
                                std::to_string(poolSmallest) + " bytes at least");
  checkPacked(node, codec, device, slot, true);
}

PackedHome homeOf(const Stream &stream, const Tensor &packed, const char *node) {
  if (packed.space != Space::Spill)
    return {static_cast<char *>(stream.address(packed))};
  if (!stream.session.packedPool())
    throw std::invalid_argument("'" + std::string(node) + "' is packed into a pool, and this session has none");
  return {nullptr, stream.session.packedPool(), packed};
}

// Records count a half as the float that its kernels make of it, so that rates are those of floats.
size_t bytesAsFloats(const Tensor &x) { return 4 * static_cast<size_t>(x.shape.elements()); }

/// zvc moves halves as they are.
size_t bytesOfRecord(Codec codec, const Tensor &x) { return codec.kind == Codec::Zvc ? x.bytes() : bytesAsFloats(x); }

} // namespace

Packing::Packing(Node node, Codec codec, const Tensor &x) : Kernel(node), codec(codec), x(x) {
  const CodecFacts *facts = factsOf(codec);
  if (!facts || !facts->onDevice || !(x.type == DataType::F32 || (isHalf(x.type) && facts->takesHalves)))
    throw std::invalid_argument("'" + std::string(node) + "' cannot be packed on the device");
  watchRefusedValues();
}

void Packing::encode(Stream &stream, const Tensor &from, const Tensor &packed) const {
  checkPacked(node, codec, from, packed, true);
  const void *raw = stream.address(from);
  void *to = stream.address(packed);
  auto work = [&] { packForm(native(stream), codec, raw, x, to, node, allBlocks); };
  stream.launch(node.as(OpRole::Encode, codec), encodeName(codec), work, bytesAsFloats(x));
}

void Packing::decode(Stream &stream, const Tensor &packed, const Tensor &to) const {
  checkPacked(node, codec, to, packed, true);
  const void *from = stream.address(packed);
  void *raw = stream.address(to);
  auto work = [&] { unpackForm(native(stream), codec, from, raw, x, allBlocks); };
  stream.launch(node.as(OpRole::Decode, codec), decodeName(codec), work, bytesAsFloats(x));
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkCopy(node, codec, from, to);
  watchRefusedValues();
  const void *x = stream.address(from);
  const PackedHome home = homeOf(stream, to, node);
  auto work = [&] {
    if (codec.kind == Codec::Zvc)
      packZeroValues(native(stream), x, home, from, node);
    else
      packForm(native(stream), codec, x, from, home.slot, node, copyBlocks);
  };
  stream.launch(node.as(OpRole::Offload, codec), copyOutName(codec), work, bytesOfRecord(codec, from));
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node, Codec codec) {
  checkCopy(node, codec, to, from);
  const PackedHome home = homeOf(stream, from, node);
  void *x = stream.address(to);
  auto work = [&] {
    if (codec.kind == Codec::Zvc)
      unpackZeroValues(native(stream), home, x, to);
    else
      unpackForm(native(stream), codec, home.slot, x, to, copyBlocks);
  };
  stream.launch(node.as(OpRole::Prefetch, codec), copyBackName(codec), work, bytesOfRecord(codec, to));
}

} // namespace sluice
