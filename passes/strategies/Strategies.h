// SPDX-License-Identifier: Apache-2.0
// The strategies' entry points, one file each; see that file for source, rule and limits. Call them through Registry.h.
#pragma once

#include "passes/strategies/Registry.h"

namespace sluice::planner {

Answer planKeep(const Problem &problem, Bytes memory, const Options &options);
Answer planGreedy(const Problem &problem, Bytes memory, const Options &options);
Answer planChen(const Problem &problem, Bytes memory, const Options &options);
Answer planDynProg(const Problem &problem, Bytes memory, const Options &options);
Answer planRotor(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnn(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnnpp(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnnAll(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnnConv(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnnAconv(const Problem &problem, Bytes memory, const Options &options);
Answer planVdnnDyn(const Problem &problem, Bytes memory, const Options &options);
Answer planAutoSwap(const Problem &problem, Bytes memory, const Options &options);
Answer planTflms(const Problem &problem, Bytes memory, const Options &options);
Answer planSuperNeurons(const Problem &problem, Bytes memory, const Options &options);
Answer planHascoet(const Problem &problem, Bytes memory, const Options &options);
Answer planFreeLunch(const Problem &problem, Bytes memory, const Options &options);
Answer planGist(const Problem &problem, Bytes memory, const Options &options);
Answer planCapuchin(const Problem &problem, Bytes memory, const Options &options);
Answer planPofo(const Problem &problem, Bytes memory, const Options &options);
Answer planCheckmate(const Problem &problem, Bytes memory, const Options &options);
Answer planMixed(const Problem &problem, Bytes memory, const Options &options);

ChainAnswer chainKeep(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainGreedy(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainChen(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainRotor(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainCheckmate(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnn(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnnpp(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnnAll(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnnConv(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnnAconv(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainVdnnDyn(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainHascoet(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainFreeLunch(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainMixed(const Chain &chain, double memory, Release release, const Options &options);
ChainAnswer chainDynProg(const Chain &chain, double memory, Release release, const Options &options);

/// Rotor's schedules for every memory of its table, fewest bytes first; `slots` 0 chooses by length. Not yet completed
/// by a Combiner.
std::vector<Plan> rotorPlans(const Problem &problem, int slots);

/// GREEDY's choice on top of a plan: marks kept tensors of at least `smallest` bytes as offloaded, earliest-born first,
/// until the plan fits `memory`. Returns the live bytes that remain at the peak with the longest gaps. Positions are
/// left to placeTransfers().
Bytes offloadEarliest(const Problem &problem, Bytes memory, Bytes smallest, Plan &plan);

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

/// The strategy of that name; null, and why, where there is none or a knob is not its own.
const Strategy *findStrategy(const std::string &name, const Options &options, std::string &error);

/// The options without lossy actions that are not named: whatever the target can do, those are off.
Options withoutUnnamed(Options options);

/// Why the options do not let a strategy use an action; empty when they do.
std::string missingAction(const Options &options, const std::string &strategy, const std::string &action);

/// A knob as a number of at least 0; the registry has checked that it is one.
double numberKnob(const Options &options, const std::string &knob, double fallback);

} // namespace sluice::planner
