// SPDX-License-Identifier: Apache-2.0
// What codecs of both runtimes share: int8 one value at a time, what they refuse, names of records, and the checks of
// slots.
#pragma once

#include "runtime/Codec.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#include <cmath>
#include <string>

namespace sluice {

/// A finite value that fp16 would make infinite.
SLUICE_KERNEL bool overflowsHalf(float x) {
  const uint32_t magnitude = bitsOfFloat(x) & 0x7fffffff;
  return magnitude >= 0x477ff000 && magnitude < 0x7f800000;
}

/// A finite value that bf16 would make infinite.
SLUICE_KERNEL bool overflowsBFloat16(float x) {
  const uint32_t magnitude = bitsOfFloat(x) & 0x7fffffff;
  return magnitude >= 0x7f7f8000 && magnitude < 0x7f800000;
}

/// A value that fixed-rate zfp cannot give back, or only as an infinity: below 2^126 the exponent e that a block shares
/// is 126 at most, and the 32-bit numbers that it decodes to, whatever was rounded, times 2^(e - 30) at most 2^127.
SLUICE_KERNEL bool overflowsZfp(float x) { return (bitsOfFloat(x) & 0x7fffffff) >= 0x7e800000; }

/// The bits of |x|, which order as magnitudes do: not finite from 0x7f800000 on.
SLUICE_KERNEL uint32_t magnitudeBits(float x) { return bitsOfFloat(x) & 0x7fffffff; }

/// A value as int8 of a block whose largest magnitude is `largest`, above 0. Divides before it multiplies, so that
/// neither the largest floats nor denormals leave their range; nothing here can be contracted to other bits.
SLUICE_KERNEL int8_t int8Of(float x, float largest) {
  const float nearest = rintf(x / largest * 127.0f);
  const float kept = x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; // of what rounds to 0
  return static_cast<int8_t>(nearest == 0 ? kept : nearest);
}
SLUICE_KERNEL float floatOfInt8(int8_t q, float largest) { return static_cast<float>(q) / 127.0f * largest; }

/// What a mask says of a value: NaN counts as above 0.
SLUICE_KERNEL bool isAbove(float x) { return !(x <= 0); }

/// The smallest normal number of a type of floats.
SLUICE_KERNEL float smallestNormal(DataType type) { return type == DataType::F16 ? 0x1p-14f : 0x1p-126f; }

/// What a codec gave back, on the side of 0 where the value was before: `above` it, or not, in a block with some
/// `below` or without any. Zeros of blocks without any come back as +0.0, what was above 0 as the `smallest` normal
/// number where the codec lost it. Infinities and NaN stay where the codec itself keeps them. In a block with some
/// below 0, a zero may come back as a negative number, which no comparison with 0 by a gradient of ReLU tells from it.
SLUICE_KERNEL float withSign(float value, bool above, bool below, float smallest) {
  if (above)
    return value <= 0 ? smallest : value;
  return !below || value > 0 ? 0.0f : value;
}

inline ValueNotStorable halfRefused(float value, const char *node) {
  return ValueNotStorable("fp16 cannot hold the value " + std::to_string(value) + " of '" + node +
                          "': its largest is 65504");
}

inline ValueNotStorable zfpRefused(const char *node, float value) {
  const bool finite = (bitsOfFloat(value) & 0x7fffffff) < 0x7f800000;
  return ValueNotStorable("zfp cannot hold '" + std::string(node) +
                          (finite ? "': a value is 2^126 or more in magnitude, of which rounding could make infinity"
                                  : "': a value is infinite or NaN"));
}

/// What a codec says of a value that it does not take.
inline ValueNotStorable valueRefused(Codec::Kind kind, float value, const char *node) {
  if (kind == Codec::Fp16)
    return halfRefused(value, node);
  if (kind == Codec::Zfp)
    return zfpRefused(node, value);
  if (kind == Codec::Bf16)
    return ValueNotStorable("bf16 cannot hold the value " + std::to_string(value) + " of '" + node +
                            "': its largest is 3.39e38");
  return ValueNotStorable("int8 cannot hold '" + std::string(node) + "': a value is infinite or NaN");
}

/// Names of records of packing, by whether a mask is beside it and by the kind of codec; they outlive the program.
#define SLUICE_PACKING_NAMES(verb)                                                                                     \
  {{verb, verb " fp16", verb " zvc", verb " zfp", verb " int8", verb " bf16"},                                         \
   {verb, verb " mask+fp16", verb, verb " mask+zfp", verb " mask+int8", verb " mask+bf16"}}
using PackingNames = const char *[2][6];
constexpr PackingNames encodeNames = SLUICE_PACKING_NAMES("encode"), decodeNames = SLUICE_PACKING_NAMES("decode"),
                       copyOutNames = SLUICE_PACKING_NAMES("copy to host"),
                       copyBackNames = SLUICE_PACKING_NAMES("copy to device"),
                       storeNames = SLUICE_PACKING_NAMES("copy to storage"),
                       loadNames = SLUICE_PACKING_NAMES("copy from storage");
#undef SLUICE_PACKING_NAMES
static_assert(Codec::Fp16 == 1 && Codec::Zvc == 2 && Codec::Zfp == 3 && Codec::Int8 == 4 && Codec::Bf16 == 5,
              "the names follow the kinds");
inline const char *encodeName(Codec codec) { return encodeNames[codec.mask][codec.kind]; }
inline const char *decodeName(Codec codec) { return decodeNames[codec.mask][codec.kind]; }
inline const char *copyOutName(Codec codec) { return copyOutNames[codec.mask][codec.kind]; }
inline const char *copyBackName(Codec codec) { return copyBackNames[codec.mask][codec.kind]; }
inline const char *storeName(Codec codec) { return storeNames[codec.mask][codec.kind]; }
inline const char *loadName(Codec codec) { return loadNames[codec.mask][codec.kind]; }

/// Throws std::invalid_argument naming `node` when `packed` is not what `codec` makes of `x`, floats or, with `halves`,
/// those, where the codec takes them.
inline void checkPacked(const char *node, Codec codec, const Tensor &x, const Tensor &packed, bool halves = false) {
  const bool taken = x.type == DataType::F32 || (halves && isHalf(x.type) && factsOf(codec)->takesHalves);
  if (static_cast<int64_t>(packed.bytes()) != packedBytes(codec, x) || !taken)
    throw std::invalid_argument("'" + std::string(node) + "' packs " + std::to_string(x.bytes()) + " bytes into " +
                                std::to_string(packed.bytes()) + ", its codec needs " +
                                std::to_string(packedBytes(codec, x)));
}

} // namespace sluice
