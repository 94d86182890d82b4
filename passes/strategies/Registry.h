// SPDX-License-Identifier: Apache-2.0
// Every strategy by name. Adding one is a file that defines it and a line in Registry.cpp.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/strategies/ChainPlan.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice::planner {

struct Options {
  std::map<std::string, std::string> knobs; ///< k=v of --strategy=NAME,k=v; an unknown one is refused by name
  /// Of "fp16", "zfp", "invert": the others are off, executable or not; "algorithms": problems have alternatives then.
  std::set<std::string> allowLossy;
  /// Actions and codecs that the target can execute: "offload", "recompute", "mask", "argmax", "counter", "zvc",
  /// "fp16", "zfp", "invert". Strategies use no others; "keep" always works. A strategy whose rule needs more is
  /// refused by name.
  std::set<std::string> executable = {"keep", "offload", "recompute"};
  /// Packs the plan's lives and plans again with less until base + packed height is within the budget.
  bool pack = true;
  int64_t packNodes = 200'000; ///< node limit of each of those packings
};

/// A strategy plans for `memory` bytes of live data, base included, by program order. It needs no packing and no final
/// checks.
using PlanFunction = Answer (*)(const Problem &problem, Bytes memory, const Options &options);

/// The same for a chain, as published: all that the strategy may do is allowed.
using ChainFunction = ChainAnswer (*)(const Chain &chain, double memory, Release release, const Options &options);

struct Strategy {
  std::string name;
  std::string summary;            ///< one line for --help and reports
  std::vector<std::string> knobs; ///< names that `Options::knobs` may hold; their values are numbers
  PlanFunction plan = nullptr;
  ChainFunction chain = nullptr; ///< null: chains are planned as op-level problems
};

/// All strategies, in the order of the reports.
const std::vector<Strategy> &strategies();
std::vector<std::string> strategyNames();

/// Plans `problem` in a device arena of `budget` bytes, base included. A Plan that is returned has passed the checker,
/// and its packed arena (`arenaBytes`) is within the budget. Infeasible::smallestMemory is a budget with which the same
/// call succeeds. Refused: malformed problem, unknown name or knob, actions that the target lacks.
Answer runStrategy(const Problem &problem, Bytes budget, const std::string &name, const Options &options = {});

/// The same for a chain. Every plan has passed checkChain. smallestMemory is for this strategy and release.
ChainAnswer runStrategy(const Chain &chain, double memory, Release release, const std::string &name,
                        const Options &options = {});

/// What plans under these options may do: what can be executed, lossy actions only where they are named.
/// actionBound() takes them.
std::set<std::string> allowedActions(const Options &options);

/// Seconds that no schedule with the strategy's actions, and those that the options allow it, can beat on the chain.
Seconds strategyBound(const Chain &chain, double memory, const std::string &name, const Options &options = {});

} // namespace sluice::planner
