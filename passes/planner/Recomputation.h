// SPDX-License-Identifier: Apache-2.0
// Turns "do not keep these buffers, run their producers again" into a plan's recompute segments: the part that every
// recomputing strategy shares. Each buffer comes back once, as late as possible: just before its first backward reader,
// or before the re-run that needs it.
#pragma once

#include "passes/planner/Program.h"

#include <vector>

namespace sluice::planner {

/// Facts about re-running forward ops that hold for every plan of a problem.
class Recomputation {
public:
  /// The problem must outlive it.
  explicit Recomputation(const Problem &problem);

  /// True when the buffer can be dropped after its last forward access and come back before its first backward reader:
  /// every writer may run again, and what it reads is not overwritten until then.
  bool possible(int buffer) const { return can[buffer]; }

  /// True when a backward op writes its result in place of the buffer's content, which cannot come back after that.
  bool overwritten(int buffer) const { return firstOverwrite[buffer] < static_cast<int>(problem.ops.size()); }

  /// The first backward op that writes into the buffer; the number of ops without one.
  int overwriteOf(int buffer) const { return firstOverwrite[buffer]; }

  /// True when a second run of the forward op reads the content that its first run read: nothing that writes it, but
  /// the op's own unit (`together`), comes later in the forward half.
  bool findsSame(int op, const std::vector<int> &together) const;

  /// True when nothing that the forward op reads has been overwritten before position `before`.
  bool findsInputs(int op, int before) const;

  /// Forward ops that write the buffer, in order.
  const std::vector<int> &writersOf(int buffer) const { return writers[buffer]; }

  /// Seconds of the buffer's forward writers.
  Seconds cost(int buffer) const { return seconds[buffer]; }

  /// What dropping `buffers` implies: other outputs of the same ops, and inputs that the backward half does not read.
  /// Such an input is dropped, too, unless a byte of it costs more than `dearer` times what a byte of the buffer itself
  /// costs to make again: then it simply lives on until the re-run. Sorted. Empty when one of them cannot come back.
  std::vector<int> closure(const std::vector<int> &buffers, double dearer = 4) const;

  /// Replaces the plan's recompute segments, and the decisions of `buffers` (closed, see closure()) by Recompute.
  void apply(const std::vector<int> &buffers, Plan &plan) const;

  /// After apply(): drops `buffers` again between backward readers that are not neighbours, and runs their producers
  /// once more before each later one. Only where the producers read nothing that was dropped itself. For budgets near
  /// the floor: every re-run costs.
  void applyAgain(const std::vector<int> &buffers, Plan &plan) const;

  /// Removes second and later re-runs of an op, the most expensive first, where its results can stay live from their
  /// last access within `memory` (base included).
  void giveBack(Bytes memory, Plan &plan) const;

private:
  std::vector<int> latestReruns() const;
  bool goesWith(int input, int buffer, double dearer) const;

  const Problem &problem;
  std::vector<Accesses> accesses;
  std::vector<int> firstOverwrite;       ///< first backward op that writes into a buffer; the number of ops without one
  std::vector<std::vector<int>> writers; ///< forward ops that write a buffer, in order
  std::vector<bool> can;
  std::vector<Seconds> seconds;
};

} // namespace sluice::planner
