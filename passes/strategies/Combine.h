// SPDX-License-Identifier: Apache-2.0
// Builds and times one complete plan from a choice of what to recompute, invert, compress and offload: encodings where
// they help, GREEDY's offloading for the rest. Mixed, Chen and the lifted chain strategies try many such choices.
#pragma once

#include "passes/planner/Gaps.h"
#include "passes/planner/Recomputation.h"
#include "passes/strategies/LossyForms.h"
#include "passes/strategies/Registry.h"

namespace sluice::planner {

/// The actions that one attempt uses, by buffer.
struct Choice {
  std::vector<int> recomputed;   ///< buffers to drop; implied ones are added
  std::vector<int> offloaded;    ///< buffers to offload whether needed or not
  std::vector<int> compressed;   ///< buffers to pack in device memory, into their first packed form that the target has
  std::vector<int> inverted;     ///< buffers to rebuild, where their inversion's sources are there in time
  std::optional<FormWish> rates; ///< under an error budget: lossy forms of what is kept otherwise, and of copies
  Codec codec;                   ///< of every offload: None, or one, where copies can apply it to the buffer
  double dearer = 4;             ///< see Recomputation::closure
  bool again = false;            ///< run producers again before every backward reader, see Recomputation::applyAgain
  bool encode = false;           ///< use lossless encodings wherever the target has them
  bool offloadRest = false;      ///< let GREEDY's rule make the room that is still missing
  Gaps gaps = Gaps::Longest;     ///< of what is offloaded
  bool mayStay = true;           ///< offloaded ones whose copies would not hide stay where memory allows
};

/// A plan that was tried, not checked yet.
struct Attempt {
  bool feasible = false;
  Bytes peak = 0;       ///< fewest live bytes of the choice, when infeasible
  Seconds makespan = 0; ///< when feasible
  Plan plan;
};

/// One problem and memory, and what all choices share. Both and the options must outlive it.
class Combiner {
public:
  Combiner(const Problem &problem, Bytes memory, const Options &options);
  Combiner(const Combiner &) = delete;
  Combiner &operator=(const Combiner &) = delete;

  /// An attempt whose compute alone takes `worthwhile` seconds is given up, infeasible.
  Attempt attempt(const Choice &choice, Seconds worthwhile = std::numeric_limits<Seconds>::infinity()) const;
  /// The same from a plan whose recompute segments are given; `choice.recomputed` is not looked at.
  Attempt complete(Plan plan, const Choice &choice,
                   Seconds worthwhile = std::numeric_limits<Seconds>::infinity()) const;
  /// The choice's tensors inverted, compressed and offloaded, with their codecs and the longest gaps, as `choice` says;
  /// when they leave and return is the caller's to place. Nothing is recomputed.
  Plan marked(const Choice &choice) const;
  bool can(Ability ability) const { return options.executable.has(ability); }

  const Problem &problem;
  const Bytes memory;
  const Options &options;
  const Recomputation recomputation;
  const std::vector<Accesses> accesses;
  const LossyForms lossy; ///< of a problem with an error budget

  /// Seconds of the first runs, re-runs and inversions.
  Seconds computeOf(const Plan &plan) const;

private:
  void encode(Plan &plan) const;
  void invert(const std::vector<int> &buffers, Plan &plan) const;
  void leave(const Choice &choice, Plan &plan) const;
  void setCodecs(const Choice &choice, Plan &plan) const;
};

/// Leaves only the encoding, which later readers take as it is, after the last forward access.
Decision encoded(const Accesses &accesses, const Encoding &encoding);

/// Drops re-run ops whose outputs nobody reads before they are written again, and marks what comes back as recomputed.
void pruneRecomputes(const Problem &problem, Plan &plan);

/// Keeps the better of two attempts: feasible first, then the shorter makespan or the smaller peak. True when `attempt`
/// won.
bool improve(Attempt &best, Attempt attempt);

/// A whole plan with its peak, and with its makespan where it fits into `memory`.
Attempt measured(const Problem &problem, Bytes memory, Plan plan);

/// The best attempt as an answer under a strategy's name.
Answer answerOf(Attempt best, const std::string &strategy, Bytes memory);

} // namespace sluice::planner
