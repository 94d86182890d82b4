// SPDX-License-Identifier: Apache-2.0
// The program of checkmate over the stages of a step, solved for whole decisions or relaxed and rounded; Checkmate.cpp
// says what it is and where it differs from the paper.
#pragma once

#include "passes/planner/Recomputation.h"
#include "passes/strategies/IntegerProgram.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::planner {

/// The program is built anew for each memory. Bytes are in units of `scale`, the largest buffer, so that the solver's
/// tolerances mean the same for every problem.
class CheckmateProgram {
public:
  /// The problem must outlive it.
  explicit CheckmateProgram(const Problem &problem);

  /// The cheapest plan with at most `memory` live bytes; without `memory` the one with the least peak. Nothing when the
  /// solver found none within `nodes` of branch and bound.
  std::optional<Plan> solve(std::optional<Bytes> memory, long nodes);

  /// Two-phase rounding (Section 5): the same with decisions between 0 and 1; what is kept by more than a threshold is
  /// kept, and the fewest re-runs that this allows follow. A plan for each of several thresholds, the paper's half
  /// among them, whose peaks may exceed `memory`. None when the relaxed program has no solution, so that no plan of
  /// re-runs has one.
  std::vector<Plan> solveRounded(std::optional<Bytes> memory);

  bool proved = false; ///< that there is none, by the last solve() that found nothing

private:
  /// Forward ops that run again together or not at all, since they write the same buffers.
  struct Unit {
    std::vector<int> ops; ///< in order
    Seconds seconds = 0;
    int until = -1; ///< the last position before which it may run again; -1: never
  };
  /// Bytes of a stage that are live at one moment, as a variable, and by how much they change there.
  struct Moment {
    IntegerProgram::Sum during, before; ///< of an op that runs again: against what is live after it, against `during`
  };

  Bytes bytes(int buffer) const { return aligned(problem, problem.buffers[buffer].bytes); }
  void findUnits();
  int lastRerun(const Unit &unit) const;
  bool carried(int buffer, int op) const;
  bool fixedAt(int buffer, int op, bool before) const;
  Bytes fixedBytes(int op, bool before) const;
  void build(std::optional<Bytes> memory, bool relaxed);
  void addForward();
  void addBetween(int op, int next);
  void addStage(size_t stage);
  void flow(size_t stage, int buffer);
  int changed(int total, IntegerProgram::Sum change);
  void limit(IntegerProgram::Sum sum, Bytes constant);
  void need(size_t stage, int buffer, std::vector<bool> &live, std::vector<bool> &ran) const;
  Plan planOf(const std::vector<std::vector<int>> &rerun) const;
  std::vector<int> roundedStage(size_t stage, const std::vector<double> &values, double threshold) const;
  bool runsAgain(int op, size_t stage) const { return runs[stage][unitOf[op]] >= 0; }

  const Problem &problem;
  const Recomputation recomputation;
  const std::vector<Accesses> accesses;
  std::vector<Unit> units;
  std::vector<int> unitOf; ///< per forward op
  int turn = 0;            ///< the first op that is not forward
  double scale = 1;

  IntegerProgram program;
  int ceiling = -1;                    ///< variable: live bytes, in units of `scale`
  std::vector<int> stages;             ///< the ops that end a stage
  std::vector<std::vector<int>> runs;  ///< [stage][unit], -1: cannot
  std::vector<std::vector<int>> keeps; ///< [stage][buffer]: kept into the stage; -1: not carried
  std::vector<Moment> moments;         ///< of the stage at hand, by forward op
  IntegerProgram::Sum own;             ///< live bytes while the stage's own op runs
};

} // namespace sluice::planner
