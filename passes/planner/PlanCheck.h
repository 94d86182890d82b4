// SPDX-License-Identifier: Apache-2.0
// The checker of plans, see Check.h: private to Check.cpp and CheckAbsences.cpp. Replays a plan in program order.
// Residency comes from a backward liveness scan and content from counting writers; the planner and the simulator derive
// both differently.
#pragma once

#include "passes/planner/Plan.h"
#include "runtime/Result.h"

namespace sluice::planner {

/// Of one plan; all that is given must outlive it. Each step names the first thing that is wrong.
class PlanCheck {
public:
  PlanCheck(const Problem &problem, const Plan &plan, Bytes memory) : problem(problem), plan(plan), memory(memory) {}

  Status check() {
    for (auto step :
         {&PlanCheck::shape, &PlanCheck::layOut, &PlanCheck::decisions, &PlanCheck::content, &PlanCheck::bytes})
      if (Status status = (this->*step)(); !status)
        return status;
    return Success{};
  }

private:
  /// One run of an op, at the position of the op that it stands before or is.
  struct Run {
    int op, position;
    bool again;
  };
  /// What one run does with one buffer; `run` is its index in `runs`.
  struct Use {
    int run;
    bool reads, writes;
    bool inverts = false; ///< an inversion reads the buffer just before the run
  };

  Status shape();
  Status segment(const Recompute &r) const;
  Status layOut();
  Status decisions();
  Status order(int b, const Decision &d) const;
  Status between(int b, const Decision &d, size_t i) const;
  Status visit(int b, const Decision &d, const Absence &a) const;
  bool isRewritten(int b) const;
  Status absence(int b, const Decision &d, size_t i) const;
  Status absences(int b, const Decision &d) const;
  Status allowed(int b, const Decision &d) const;
  void noteInversions();
  Status content();
  Status contentOf(int b) const;
  Status bytes();
  void addLiveBytes(int b, std::vector<Bytes> &change) const;
  int lastOfValues(int b) const;
  Bytes padded(Bytes b) const { return (b / problem.alignment + (b % problem.alignment != 0)) * problem.alignment; }
  std::string buffer(int b) const { return "buffer '" + problem.buffers[b].name + "'"; }
  std::string op(int k) const { return "op " + std::to_string(k) + " '" + problem.ops[k].name + "'"; }

  const Problem &problem;
  const Plan &plan;
  const Bytes memory;
  std::vector<Run> runs;
  std::vector<std::vector<Use>> uses; ///< per buffer, by run
  std::vector<int> opens;             ///< first run of each position
};

} // namespace sluice::planner
