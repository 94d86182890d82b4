// SPDX-License-Identifier: Apache-2.0
// Floor and bounds from the problem alone.
#include "passes/planner/Bounds.h"

#include "passes/planner/Program.h"

#include <algorithm>
#include <set>

namespace sluice::planner {

Bytes memoryFloor(const Problem &problem) {
  Bytes floor = 0;
  for (const Op &op : problem.ops) {
    std::set<int> touched(op.reads.begin(), op.reads.end());
    touched.insert(op.writes.begin(), op.writes.end());
    Bytes bytes = aligned(problem, op.workspace);
    for (int b : touched) {
      Bytes least = problem.buffers[b].bytes;
      // A backward op may read the encoded form instead.
      if (op.phase != Phase::Forward)
        for (const Encoding &e : problem.buffers[b].encodings)
          least = std::min(least, e.bytes);
      bytes += aligned(problem, least);
    }
    floor = std::max(floor, bytes);
  }
  return problem.base + floor;
}

Seconds offloadBound(const Problem &problem, Bytes memory) {
  Seconds compute = 0;
  for (const Op &op : problem.ops)
    compute += op.seconds;
  const Bytes excess = std::max<Bytes>(0, peakBytes(problem, expand(problem, keepPlan(problem))) - memory);
  if (excess == 0)
    return compute;
  const Seconds out = excess / problem.link.d2h, in = excess / problem.link.h2d;
  // With one engine both ways share its time; with two each way has its own.
  return std::max(compute, problem.link.duplex == 0 ? out + in : std::max(out, in));
}

} // namespace sluice::planner
