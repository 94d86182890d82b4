// SPDX-License-Identifier: Apache-2.0
// What everybody asks about codecs, in one table: verifiers, planner, command line, code generation, both runtimes.
// Sizes and kernels are in Codec.h. Standard library only. The checkers of plans and of placed programs keep facts of
// their own on purpose.
#pragma once

#include "runtime/StreamTable.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace sluice {

/// The form that a tensor is kept in; None: as it is. Codecs of floats:
/// - fp16: IEEE half precision, rounded to nearest even, of 32-bit floats alone. Infinities and NaN survive; a finite
///   value that would become infinite is refused (ValueNotStorable).
/// - zvc: exact. Zeros (of the whole bit pattern, so -0.0 survives) are left out; host memory only. The slot has room
///   for the raw bytes. The cuda target packs before the link, the host target after it. With `zvc:pool=BYTES` it lies
///   in the spill arena, which takes what that much host memory, shared by all such tensors, does not hold.
/// - zfp: P. Lindstrom, Fixed-Rate Compressed Floating-Point Arrays, TVCG 2014: `rate` bits a value, in blocks of 4x4
///   of the physical order, from 2 to 31: `zfp:12`; `zfp` alone means 8. Values that are not finite are refused.
/// - int8: blocks of 64 neighbours of the physical order; each keeps its largest magnitude m as it is and of every
///   value x the integer 127 x / m, rounded to nearest even, but to 1 or -1 where that is 0 and x is not. So the
///   largest comes back exactly, zeros and signs do, and errors are at most m / 254, of values below that m / 127.
///   Quantization by groups is that of J. Chen et al., ActNN, ICML 2021, normalizing blocks by their largest magnitude
///   that of T. Dettmers et al., 8-bit Optimizers via Block-wise Quantization, ICLR 2022; ours are the evenly spaced
///   integers, the rounding (ActNN's is stochastic, hence without bias), and that it keeps signs. Values that are not
///   finite are refused.
/// - bf16: the upper half of a 32-bit float, rounded to nearest even, of 32-bit floats alone: the range of floats with
///   8 bits of each, where fp16 has 11 and ends at 65504. Infinities and NaN survive; a finite value that would become
///   infinite is refused.
///
/// `mask+NAME` of a codec that packs in device memory keeps a mask in front of its packed form, so that what comes back
/// lies on the side of 0 where it was, however it was rounded: see withSign() in kernels/CodecRules.h.
///
/// Mask, Argmax and Counter are no codecs of floats, but what gradients read instead: 1 bit an element, a pool's
/// indices, the counter that a dropout mask is drawn from again.
struct Codec {
  enum Kind : uint8_t { None, Fp16, Zvc, Zfp, Int8, Bf16, Mask, Argmax, Counter };
  Kind kind;
  int rate;     ///< zfp only, bits a value; 0: whatever all such tensors are given
  int64_t pool; ///< zvc only: bytes of host memory that all such tensors share; 0: each has its own slot
  bool mask;    ///< a mask keeps the side of 0 beside it

  constexpr Codec(Kind kind = None, int rate = 0, int64_t pool = 0, bool mask = false)
      : kind(kind), rate(rate), pool(pool), mask(mask) {}
  /// The rate that a program packs with.
  constexpr int bits() const { return rate > 0 ? rate : 8; }
  constexpr explicit operator bool() const { return kind != None; }
};

constexpr bool operator==(const Codec &a, const Codec &b) {
  return a.kind == b.kind && a.rate == b.rate && a.pool == b.pool && a.mask == b.mask;
}
constexpr bool operator!=(const Codec &a, const Codec &b) { return !(a == b); }
constexpr bool operator<(const Codec &a, const Codec &b) {
  return std::tie(a.kind, a.mask, a.rate, a.pool) < std::tie(b.kind, b.mask, b.rate, b.pool);
}

/// Facts about a form. Copies between device and host can apply every codec of floats on their way.
struct CodecFacts {
  const char *name; ///< in plans, profiles and flags, without parameters
  Codec::Kind kind;
  const char *kindName; ///< the enumerator, for emitted source
  bool exact;           ///< else it must be named in --allow-lossy
  bool readDirectly;    ///< no codec of floats: readers take the form itself (Action::Encode)
  bool made;            ///< by an op of its own; else what the layer leaves anyway
  bool onDevice;        ///< packs in device memory, and unpacks before anyone reads (Action::Compress)
  bool keepsSigns; ///< without a mask: zeros stay zeros and signs stay, gradients may compare what came back with 0
  bool guardedInversion; ///< of lossy ones: what came back can be inverted where digits that get lost are set aside
  bool takesHalves;      ///< packs floats of 16 bits, too, not of 32 bits alone
  bool inPieces;         ///< packs parts of a tensor on their own (Packs::Pieces)
};

constexpr CodecFacts codecTable[] = {
    // name, kind, kindName, exact, readDirectly, made, onDevice, keepsSigns, guardedInversion, takesHalves,
    // inPieces
    {"fp16", Codec::Fp16, "Fp16", false, false, true, true, true, true, false, true},
    // Of copies alone. Where it packs after the link that carries raw bytes, else what is not zero: Problem::zerosStay.
    {"zvc", Codec::Zvc, "Zvc", true, false, true, false, true, true, true, true},
    // Errors are absolute: zeros and signs get lost, and the inverse of a small slope would multiply them. Blocks, of
    // neighbours in two dimensions, would be cut by pieces of a tensor.
    {"zfp", Codec::Zfp, "Zfp", false, false, true, true, false, false, true, false},
    // Errors are absolute within a block, too.
    {"int8", Codec::Int8, "Int8", false, false, true, true, true, false, true, true},
    // 8 bits are too few for what an inversion loses.
    {"bf16", Codec::Bf16, "Bf16", false, false, true, true, true, false, false, true},
    {"mask", Codec::Mask, "Mask", true, true, true, false, true, true, true, false},
    {"argmax", Codec::Argmax, "Argmax", true, true, false, false, true, true, true, false},
    {"counter", Codec::Counter, "Counter", true, true, false, false, true, true, true, false},
};

constexpr bool followsKinds() {
  int kind = Codec::None;
  for (const CodecFacts &facts : codecTable)
    if (facts.kind != ++kind)
      return false;
  return kind == Codec::Counter;
}
static_assert(followsKinds(), "a row for each kind, in their order");

/// Null for None.
constexpr const CodecFacts *factsOf(Codec codec) { return codec ? &codecTable[codec.kind - 1] : nullptr; }

/// Whether copies to the arena can pack with that codec of floats; None is what they all can.
constexpr bool packsFor(const ArenaFacts &arena, Codec codec) {
  return !codec || arena.packs == Packs::Whole ||
         (arena.packs == Packs::Pieces && factsOf(codec)->inPieces && codec.pool == 0);
}

constexpr std::string_view maskPrefix = "mask+";

/// By name, whatever parameters follow it and whether a mask stands beside it; null for an unknown one and for "". The
/// name in the table is what --allow-lossy and profiles know.
constexpr const CodecFacts *findCodec(std::string_view name) {
  const bool mask = name.substr(0, maskPrefix.size()) == maskPrefix;
  name.remove_prefix(mask ? maskPrefix.size() : 0);
  for (const CodecFacts &facts : codecTable)
    if (name.substr(0, name.find(':')) == facts.name && (facts.onDevice || !mask))
      return &facts;
  return nullptr;
}

/// What parseForm() reads; "" for None.
inline std::string codecName(Codec codec) {
  if (!codec)
    return "";
  return (codec.mask ? std::string(maskPrefix) : "") + factsOf(codec)->name +
         (codec.rate > 0 ? ":" + std::to_string(codec.rate) : "") +
         (codec.pool > 0 ? ":pool=" + std::to_string(codec.pool) : "");
}

/// The number of decimal digits and nothing else, below 10^18; else 0.
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

/// A form with its parameters, "zfp:12" or "mask+zfp:12". "" is None; nothing for an unknown name or parameter.
inline std::optional<Codec> parseForm(std::string_view name) {
  if (name.empty())
    return Codec{};
  const CodecFacts *facts = findCodec(name);
  if (!facts)
    return std::nullopt;
  Codec codec{facts->kind};
  codec.mask = name.substr(0, maskPrefix.size()) == maskPrefix;
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

/// The same of codecs of floats alone.
inline std::optional<Codec> parseCodec(std::string_view name) {
  const std::optional<Codec> codec = parseForm(name);
  return codec && *codec && factsOf(*codec)->readDirectly ? std::nullopt : codec;
}

} // namespace sluice
