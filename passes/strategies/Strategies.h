// SPDX-License-Identifier: Apache-2.0
// What strategies share: parts of one that others build on, knobs, and what options let them do.
#pragma once

#include "passes/strategies/Combine.h"

#include <functional>
#include <optional>

namespace sluice::planner {

/// keep's answer for a chain.
ChainAnswer chainKeep(const Chain &chain, double memory, Release release, const Options &options);

/// chen's best plan: of all segment lengths, or of that of so many segments.
Attempt bestSegments(const Combiner &combiner, int segments);

/// rotor's best plan; `slots` as for rotorTable().
Attempt bestRematerialization(const Combiner &combiner, int slots);

/// GREEDY's choice on top of a plan: marks kept tensors of at least `smallest` bytes as offloaded, earliest-born first,
/// until the plan fits `memory`. Returns the live bytes that remain at the peak with gaps of that kind at their
/// longest. Positions are left to placeTransfers().
Bytes offloadEarliest(const Problem &problem, Bytes memory, Bytes smallest, Plan &plan, Gaps gaps = Gaps::Longest);

/// The plan with all of those kept tensors offloaded, which leave for as long as they can; nothing where it then needs
/// more live bytes.
std::optional<Plan> movingAll(const Problem &problem, Bytes smallest, Plan plan);

/// Lets offloaded tensors stay on the device, latest-born first, where live bytes remain within `memory`. True when any
/// does. Other positions are left as they are.
bool giveBack(const Problem &problem, Bytes memory, Plan &plan);

/// Bytes below which a copy costs more than it brings: what crosses in its fixed cost, at most 64 KiB. Sizes of chain
/// files have no unit, and their copies no fixed cost.
Bytes smallestCopy(const Problem &problem);

/// GREEDY's set: the shortest prefix x_0..x_k whose bytes are at least what is missing.
std::vector<bool> greedyPrefix(const Chain &chain, double memory);

/// vDNN's set of a mode: 1 all, 2 conv, 3 aconv. The chain has kinds.
std::vector<bool> vdnnSet(const Chain &chain, int mode);
std::vector<int> vdnnInputs(const Problem &problem, int mode);

/// vDNN's dyn: the first that fits of nothing, aconv, conv and all offloaded with the fastest kernels, then of aconv,
/// conv and all with the fastest whose workspace fits beside what is live, which may be those of least workspace.
/// `attemptOf` completes a plan with its kernels by the protocol of whoever asks. Where none fits, the one of fewest
/// live bytes.
Attempt vdnnDyn(const Problem &problem, Bytes memory, bool mayOffload,
                const std::function<Attempt(Plan plan, const std::vector<int> &offloaded)> &attemptOf);

/// The strategy of that name; refused where there is none or a knob is not its own.
Result<const Strategy *> findStrategy(const std::string &name, const Options &options);

/// The options without lossy actions that are not named: whatever the target can do, those are off.
Options withoutUnnamed(Options options);

/// Refuses an action or a codec that the options do not let a strategy use.
Status checkAbility(const Options &options, const std::string &strategy, Ability ability);

/// A knob as a number of at least 0; the registry has checked that it is one.
double numberKnob(const Options &options, const std::string &knob, double fallback);

} // namespace sluice::planner
