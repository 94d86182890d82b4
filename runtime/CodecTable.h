// SPDX-License-Identifier: Apache-2.0
// What everybody asks about codecs, in one table: verifiers, planner, command line, code generation, both runtimes.
// Sizes and kernels are in Codec.h. Standard library only. The checkers of plans and of placed programs keep facts of
// their own on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

/// How floats are packed; None: not at all.
/// - fp16: IEEE half precision, rounded to nearest even, of 32-bit floats alone. Infinities and NaN survive; a finite
///   value that would become infinite is refused (ValueNotStorable).
/// - zvc: exact. Zeros (of the whole bit pattern, so -0.0 survives) are left out; host memory only. The slot has room
///   for the raw bytes. Cuda packs before the link, the host's target after it. With `zvc:pool=BYTES` it lies in the
///   spill arena, which takes what that much host memory, shared by all such tensors, does not hold.
/// - zfp: P. Lindstrom, Fixed-Rate Compressed Floating-Point Arrays, TVCG 2014: `rate` bits a value, in blocks of 4x4
///   of the physical order; `zfp` alone means 8, `zfp:12` another rate from 2 to 31. Values that are not finite are
///   refused.
/// - int8: blocks of 64 neighbours of the physical order; each keeps its largest magnitude m as it is and of every
///   value x the integer 127 x / m, rounded to nearest even, but to 1 or -1 where that is 0 and x is not. So the
///   largest comes back exactly, zeros and signs do, and errors are at most m / 254, of values below that m / 127.
///   Quantization by groups is that of J. Chen et al., ActNN, ICML 2021, normalizing blocks by their largest magnitude
///   that of T. Dettmers et al., 8-bit Optimizers via Block-wise Quantization, ICLR 2022; ours are the evenly spaced
///   integers, the rounding (ActNN's is stochastic, hence without bias), and that it keeps signs. Values that are not
///   finite are refused.
///
/// `mask+NAME` of a codec that packs in device memory keeps a mask in front of its packed form, so that what comes back
/// lies on the side of 0 where it was, however it was rounded: see withSign() in kernels/CodecRules.h.
struct Codec {
  enum Kind : uint8_t { None, Fp16, Zvc, Zfp, Int8 };
  Kind kind = None;
  int rate = 8;      ///< zfp only
  int64_t pool = 0;  ///< zvc only: bytes of host memory that all such tensors share; 0: each has its own slot
  bool mask = false; ///< a mask keeps the side of 0 beside it
};

constexpr std::string_view maskPrefix = "mask+";

/// The name of a codec without the mask that it may have beside it, and whether it has one.
constexpr std::string_view withoutMask(std::string_view name) {
  return name.substr(0, maskPrefix.size()) == maskPrefix ? name.substr(maskPrefix.size()) : name;
}
constexpr bool hasMask(std::string_view name) { return withoutMask(name).size() < name.size(); }

/// Facts about a form that a tensor is kept in. Three of them are no codecs of floats, but what gradients read instead:
/// a mask (1 bit an element), a pool's indices, the counter that a dropout mask is drawn from again. Copies between
/// device and host can apply every codec of floats on their way.
struct CodecFacts {
  const char *name;     ///< in plans, profiles and flags, without parameters
  Codec::Kind kind;     ///< None: no codec of floats
  const char *kindName; ///< the enumerator, for emitted source
  bool exact;           ///< else it must be named in --allow-lossy
  bool readDirectly;    ///< readers take the form itself (Action::Encode)
  bool made;            ///< by an op of its own; else what the layer leaves anyway
  bool onDevice;        ///< packs in device memory, and unpacks before anyone reads (Action::Compress)
  bool keepsSigns; ///< without a mask: zeros stay zeros and signs stay, gradients may compare what came back with 0
  bool guardedInversion; ///< of lossy ones: what came back can be inverted where digits that get lost are set aside
};

constexpr CodecFacts codecTable[] = {
    // name, kind, kindName, exact, readDirectly, made, onDevice, keepsSigns, guardedInversion
    {"mask", Codec::None, "", true, true, true, false, true, true},
    {"argmax", Codec::None, "", true, true, false, false, true, true},
    {"counter", Codec::None, "", true, true, false, false, true, true},
    {"fp16", Codec::Fp16, "Fp16", false, false, true, true, true, true},
    // Of copies alone. Where it packs after the link that carries raw bytes, else what is not zero: Problem::zerosStay.
    {"zvc", Codec::Zvc, "Zvc", true, false, true, false, true, true},
    // Errors are absolute: zeros and signs get lost, and the inverse of a small slope would multiply them.
    {"zfp", Codec::Zfp, "Zfp", false, false, true, true, false, false},
    // Errors are absolute within a block, too.
    {"int8", Codec::Int8, "Int8", false, false, true, true, true, false},
};

/// By name, whatever parameters follow it and whether a mask stands beside it; null for an unknown one and for "". The
/// name in the table is what --allow-lossy and profiles know.
constexpr const CodecFacts *findCodec(std::string_view name) {
  const std::string_view own = withoutMask(name), base = own.substr(0, own.find(':'));
  for (const CodecFacts &facts : codecTable)
    if (base == facts.name && (facts.onDevice || !hasMask(name)))
      return &facts;
  return nullptr;
}

/// Of a codec of floats; null for None.
constexpr const CodecFacts *factsOf(Codec codec) {
  for (const CodecFacts &facts : codecTable)
    if (codec.kind != Codec::None && facts.kind == codec.kind)
      return &facts;
  return nullptr;
}

/// Decimal digits and nothing else, at most 10^18; else 0.
inline int64_t parsePoolBytes(std::string_view digits) {
  int64_t bytes = 0;
  for (char c : digits) {
    if (c < '0' || c > '9' || bytes >= int64_t(100'000'000'000'000'000))
      return 0;
    bytes = 10 * bytes + c - '0';
  }
  return bytes;
}

/// Of decimal digits up to 999; else 1000.
inline int parseRate(std::string_view digits) {
  int rate = 0;
  for (char c : digits)
    rate = c >= '0' && c <= '9' && rate < 100 ? 10 * rate + c - '0' : 1000;
  return rate;
}

/// A codec of floats with its parameters. "" is None; nothing for an unknown name or parameter.
inline std::optional<Codec> parseCodec(std::string_view name) {
  if (name.empty())
    return Codec{};
  const CodecFacts *facts = findCodec(name);
  if (!facts || facts->kind == Codec::None)
    return std::nullopt;
  Codec codec{facts->kind};
  codec.mask = hasMask(name);
  const size_t colon = name.find(':');
  if (colon == name.npos)
    return codec;
  const std::string_view parameter = name.substr(colon + 1);
  if (constexpr std::string_view pool = "pool="; codec.kind == Codec::Zvc && parameter.substr(0, pool.size()) == pool) {
    codec.pool = parsePoolBytes(parameter.substr(pool.size()));
    return codec.pool > 0 ? std::optional(codec) : std::nullopt;
  }
  codec.rate = parseRate(parameter);
  if (codec.kind != Codec::Zfp || codec.rate < 2 || codec.rate > 31)
    return std::nullopt;
  return codec;
}

} // namespace sluice
