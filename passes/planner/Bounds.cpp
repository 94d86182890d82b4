// SPDX-License-Identifier: Apache-2.0
// Floor and bounds from the problem alone.
#include "passes/planner/Bounds.h"

#include "passes/planner/Program.h"

#include <algorithm>
#include <limits>
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

Seconds splitBound(Seconds compute, double missing, double movable, double secondsPerByte,
                   std::vector<std::pair<double, Seconds>> parts) {
  const Seconds never = std::numeric_limits<Seconds>::infinity();
  if (missing <= 0)
    return compute;
  std::sort(parts.begin(), parts.end(),
            [](const auto &a, const auto &b) { return a.second * b.first < b.second * a.first; });
  auto again = [&](double bytes) {
    Seconds cost = 0;
    for (auto [size, seconds] : parts) {
      if (bytes <= 0)
        return cost;
      cost += size > bytes ? seconds * bytes / size : seconds;
      bytes -= size;
    }
    return bytes > 1e-9 * missing ? never : cost;
  };
  // Moving more costs the link and saves re-runs: the best split is where both sides meet.
  double low = 0, high = std::min(missing, movable);
  if (compute + again(missing - high) >= high * secondsPerByte)
    return compute + again(missing - high);
  for (int step = 0; step < 100; ++step) {
    const double moved = (low + high) / 2;
    (compute + again(missing - moved) > moved * secondsPerByte ? low : high) = moved;
  }
  return low * secondsPerByte;
}

Seconds exactBound(const Problem &problem, Bytes memory, BoundActions actions) {
  Seconds compute = 0;
  for (const Op &op : problem.ops)
    compute += op.seconds;
  const std::vector<Bytes> live = liveBytes(problem, expand(problem, keepPlan(problem)));
  if (live.empty())
    return compute;
  const int peak = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
  double missing = static_cast<double>(live[peak] - memory), movable = 0;
  const std::vector<Accesses> accesses = accessesOf(problem);
  std::vector<std::pair<double, Seconds>> parts;
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    const Accesses &a = accesses[b];
    if (a.lastForward < 0 || a.lastForward >= peak || a.firstLater <= a.lastForward || a.last < peak)
      continue;
    Bytes bytes = aligned(problem, buffer.bytes);
    if (actions.encode && !buffer.encodings.empty()) {
      missing -= static_cast<double>(bytes);
      continue;
    }
    const Op &op = problem.ops[peak];
    const auto uses = [&](const std::vector<int> &list) {
      return std::find(list.begin(), list.end(), static_cast<int>(b)) != list.end();
    };
    if (uses(op.reads) || uses(op.writes))
      continue;
    // Between two backward readers a tensor may be dropped and made again, but not moved.
    if (a.firstLater > peak)
      movable += buffer.offloadable && actions.offload ? static_cast<double>(bytes) : 0;
    Seconds seconds = 0;
    for (int producer : buffer.producers)
      seconds += problem.ops[producer].seconds;
    if (actions.recompute && !buffer.producers.empty())
      parts.push_back({static_cast<double>(bytes), seconds});
  }
  const Link &link = problem.link;
  const double perByte = movable == 0       ? 0
                         : link.duplex == 0 ? 1 / link.d2h + 1 / link.h2d
                                            : std::max(1 / link.d2h, 1 / link.h2d);
  return splitBound(compute, missing, movable, perByte, parts);
}

} // namespace sluice::planner
