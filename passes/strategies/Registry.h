// SPDX-License-Identifier: Apache-2.0
// Every strategy by name. Adding one is a file that describes it and a line in Registry.cpp.
#pragma once

#include "passes/planner/Abilities.h"
#include "passes/strategies/ChainPlan.h"
#include "runtime/Result.h"

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::planner {

/// Stands for no limit, in bytes: more than any device or host has.
constexpr Bytes noBudget = Bytes(1) << 60;

class RotorTable; // Rotor.h
struct SearchEnd; // MixedSearch.h

/// Results that do not depend on the budget, kept for planning one problem with the same options again.
struct KnownPlans {
  /// A strategy's plan of fewest live bytes; not packed where its arena is 0.
  std::map<std::string, Answer> least;
  /// One that packs lower than that plan, of a strategy that has weaker ones.
  std::map<std::string, Plan> lower = {};
  /// keep's, packed as tightly as can be, by name of the function.
  std::map<std::string, Answer> keep;
  /// By the sets of fewer actions that the strategy plans with, too (Strategy::fewer), in their order.
  std::vector<KnownPlans> fewer = {};
  /// Where mixed's last search ended; one among more actions goes on from there.
  std::shared_ptr<const SearchEnd> end = nullptr;
  /// Of each chain that was planned, see rotorTable().
  std::vector<std::shared_ptr<const RotorTable>> rotorTables = {};
};

/// What a call of runStrategy() may be told beside the problem and its memory.
struct Options {
  std::map<std::string, std::string> knobs; ///< k=v of --strategy=NAME,k=v; an unknown one is refused by name
  /// Those of lossyActions() that plans may use; the others are off, executable or not. With `algorithms` problems have
  /// alternatives.
  Abilities allowLossy;
  /// Of allActions(), those that the target can execute. Strategies use no others; to keep always works. A strategy
  /// whose rule needs more is refused by name.
  Abilities executable = {Action::Keep, Action::Offload, Action::Recompute};
  /// Packs the plan's lives and plans again with less until base + packed height is within the budget.
  bool pack = true;
  int64_t packNodes = 200'000; ///< node limit of each of those packings
  /// A plan to compare with others, quickly: of a few trials, by the strategy itself, none for the least memory. That
  /// there is none says little where the budget is near the floor, which Infeasible names.
  bool sketch = false;
  KnownPlans *known = nullptr; ///< read and filled, where not null; outlives the call
};

/// A strategy plans for `memory` bytes of live data, base included, by program order. It needs no packing and no final
/// checks.
using PlanFunction = Answer (*)(const Problem &problem, Bytes memory, const Options &options);

/// The same for a chain, as published: all that the strategy may do is allowed.
using ChainFunction = ChainAnswer (*)(const Chain &chain, double memory, Release release, const Options &options);

/// A number of at least 0 that --strategy=NAME,k=v sets.
struct Knob {
  std::string name;
  double most = 1e15; ///< less where counts, tables or integer programs grow with it
};

/// What everybody else knows of a strategy.
struct Strategy {
  std::string name;
  std::string summary; ///< one line for --help and reports
  PlanFunction plan = nullptr;
  ChainFunction chain = nullptr; ///< null: chains become op-level problems (ChainProblem.h)
  std::vector<Knob> knobs = {};
  Abilities actions = {};        ///< that its plans may consist of, besides what is kept
  bool lossyAsPublished = false; ///< on chains it uses its lossy actions whether options allow them or not
  bool reference = false;        ///< its arena is what percentages refer to: packed as tightly as can be
  /// Whose plans its rule may make, too, as it may move all activations: where its plan of least live bytes packs
  /// badly, it moves all, or does what one of them does, so that it gets along wherever they do.
  std::vector<std::string> weaker = {};
  bool takesOver = false; ///< answers with the best of its own plan and those of the others
  /// Options with fewer actions whose plans, packed, compete with the one of all; they are made first. Null: none.
  std::vector<Options> (*fewer)(const Problem &problem, const Options &options) = nullptr;

  /// The largest problem, in ops, and chain, in stages, for which a strategy that takes over asks this one, too.
  struct {
    size_t ops = std::numeric_limits<size_t>::max(), stages = std::numeric_limits<size_t>::max();
  } takenOver = {};
};

/// All strategies, in the order of the reports.
const std::vector<Strategy> &strategies();
/// "NAME[,k=v...]", in parts.
struct StrategyWords {
  std::string name;
  std::vector<std::pair<std::string, std::string>> knobs; ///< in order; the last word counts
};
/// Errors name the part that is no k=v.
Result<StrategyWords> parseStrategy(const std::string &words);
std::vector<std::string> strategyNames();

/// Plans `problem` in a device arena of `budget` bytes, base included. A Plan that is returned has passed the checker,
/// and its packed arena (`arenaBytes`) is within the budget; with noBudget it is packed as tightly as can be.
/// Infeasible::smallestMemory is a budget with which the same call succeeds. Refused: malformed problem, unknown name
/// or knob, actions that the target lacks.
Answer runStrategy(const Problem &problem, Bytes budget, const std::string &name, const Options &options = {});

/// The same for a chain. Every plan has passed checkChain. smallestMemory is for this strategy and release.
ChainAnswer runStrategy(const Chain &chain, double memory, Release release, const std::string &name,
                        const Options &options = {});

/// What plans under these options may do: what can be executed, lossy actions only where they are named.
/// actionBound() takes them.
Abilities allowedActions(const Options &options);

/// Seconds that no schedule with the strategy's actions, and those that the options allow it, can beat on the chain.
Seconds strategyBound(const Chain &chain, double memory, const std::string &name, const Options &options = {});

} // namespace sluice::planner
