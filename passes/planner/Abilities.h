// SPDX-License-Identifier: Apache-2.0
// What plans may do with a step, as sets: what a target executes, what a user allows, what a strategy is made of.
#pragma once

#include "passes/planner/Plan.h"

#include <cstdint>
#include <initializer_list>

namespace sluice::planner {

/// An action, or a codec at any rate, with a mask or without. A codec stands for all that it is there for: to encode,
/// to compress, to pack copies; the actions of these names are no abilities of their own.
class Ability {
public:
  constexpr Ability(Action action) : bit(uint32_t(1) << static_cast<int>(action)) {}
  constexpr Ability(Codec::Kind codec) : bit(uint32_t(1) << (firstCodec + codec)) {}
  constexpr Ability(Codec codec) : Ability(codec.kind) {}
  /// To choose kernels' algorithms, whose results differ by rounding.
  static constexpr Ability algorithms() { return Ability(uint32_t(1) << 31); }

  constexpr bool operator==(Ability other) const { return bit == other.bit; }

private:
  friend class Abilities;
  static constexpr int firstCodec = 8;
  static_assert(static_cast<int>(Action::Recompute) < firstCodec && firstCodec + Codec::Counter < 31, "a bit for each");

  constexpr explicit Ability(uint32_t bit) : bit(bit) {}

  uint32_t bit;
};

class Abilities {
public:
  constexpr Abilities() = default;
  constexpr Abilities(std::initializer_list<Ability> all) {
    for (Ability ability : all)
      add(ability);
  }

  constexpr bool has(Ability ability) const { return (bits & ability.bit) != 0; }
  constexpr bool empty() const { return bits == 0; }
  constexpr void add(Ability ability) { bits |= ability.bit; }
  constexpr void remove(Ability ability) { bits &= ~ability.bit; }

  friend constexpr Abilities operator|(Abilities a, Abilities b) { return Abilities(a.bits | b.bits); }
  friend constexpr Abilities operator&(Abilities a, Abilities b) { return Abilities(a.bits & b.bits); }
  /// What is in the first alone.
  friend constexpr Abilities operator-(Abilities a, Abilities b) { return Abilities(a.bits & ~b.bits); }

private:
  constexpr explicit Abilities(uint32_t bits) : bits(bits) {}

  uint32_t bits = 0;
};

/// Codecs that round, or those that keep every bit.
constexpr Abilities codecsThat(bool round) {
  Abilities codecs;
  for (const CodecFacts &codec : codecTable)
    if (codec.exact != round)
      codecs.add(codec.kind);
  return codecs;
}

/// Actions that are allowed by their own names: those that round, or those that keep every bit.
constexpr Abilities actionsThat(bool round) {
  Abilities actions;
  for (const ActionFacts &facts : actionTable)
    if (!facts.needsCodec && facts.rounds == round)
      actions.add(facts.action);
  return actions;
}

constexpr Abilities lossyCodecs() { return codecsThat(true); }
/// What is off unless --allow-lossy names it, but for algorithms.
constexpr Abilities lossyActions() { return lossyCodecs() | actionsThat(true); }
constexpr Abilities exactActions() { return codecsThat(false) | actionsThat(false); }
constexpr Abilities allActions() { return exactActions() | lossyActions(); }

} // namespace sluice::planner
