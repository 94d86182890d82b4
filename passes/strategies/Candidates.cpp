// SPDX-License-Identifier: Apache-2.0
// Ranks the tensors of a program by what dropping them frees against what their return costs.
#include "passes/strategies/Candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::planner {

// Costs have a billionth of a second more, so that what costs nothing is ranked by its bytes.
Ranking rankTensors(const Combiner &combiner, bool mayRecompute, bool preferInversion) {
  const Problem &problem = combiner.problem;
  Ranking made;
  made.closures.resize(problem.buffers.size());
  double total = 0;
  for (const Buffer &buffer : problem.buffers)
    total += buffer.activation ? buffer.bytes : 0;
  std::vector<std::pair<double, int>> rank;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    const Buffer &buffer = problem.buffers[b];
    // Vectors of a channel's statistics would make the list long and free nothing.
    if (!buffer.activation || !combiner.accesses[b].hasGap() || buffer.bytes < 1e-6 * total)
      continue;
    Seconds cost = std::numeric_limits<Seconds>::infinity();
    std::vector<int> &closure = made.closures[b];
    if (mayRecompute && combiner.recomputation.possible(b))
      closure = combiner.recomputation.closure({b});
    if (!closure.empty())
      cost = 1e-9;
    for (int c : closure)
      cost += combiner.recomputation.cost(c);
    // An inversion needs no other tensor dropped with it.
    if (combiner.can(Action::Invert) && buffer.inversion && (preferInversion || buffer.inversion->seconds < cost)) {
      cost = buffer.inversion->seconds + 1e-9;
      made.byInversion.insert(b);
      closure = {b};
    }
    if (std::isfinite(cost))
      // Bytes freed for a second, the most first.
      rank.push_back({-buffer.bytes / cost, b});
  }
  std::sort(rank.begin(), rank.end());
  for (auto [key, b] : rank)
    made.order.push_back(b);
  return made;
}

// The link is taken for busy with copies out during the forward half alone: those back have the backward half.
int birthAfter(const Combiner &combiner, double share) {
  const Problem &problem = combiner.problem;
  Seconds forward = 0;
  for (const Op &op : problem.ops)
    forward += op.phase == Phase::Forward ? op.seconds : 0;
  double room = share * forward * problem.link.d2h;
  std::vector<std::pair<int, Bytes>> births;
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].offloadable && combiner.accesses[b].hasGap())
      births.push_back({combiner.accesses[b].first, problem.buffers[b].bytes});
  std::sort(births.begin(), births.end());
  for (auto [born, bytes] : births)
    if ((room -= bytes) <= 0)
      return born;
  return static_cast<int>(problem.ops.size());
}

bool anyPacked(const Combiner &combiner) {
  return std::any_of(combiner.problem.buffers.begin(), combiner.problem.buffers.end(), [&](const Buffer &b) {
    return std::any_of(b.encodings.begin(), b.encodings.end(),
                       [&](const Encoding &e) { return !readDirectly(e.codec) && combiner.can(e.codec); });
  });
}

// Each counts with its first form that the codec still has time for; what it has no time for is passed over for later
// ones.
std::vector<int> packedWithin(const Combiner &combiner, double share, int from) {
  const Problem &problem = combiner.problem;
  Seconds room = 0;
  for (const Op &op : problem.ops)
    room += op.phase == Phase::Forward ? share * op.seconds : 0;
  std::vector<int> order;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (problem.buffers[b].activation && combiner.accesses[b].hasGap() && combiner.accesses[b].first >= from)
      order.push_back(b);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  std::vector<int> chosen;
  for (int b : order)
    for (const Encoding &e : problem.buffers[b].encodings)
      if (!readDirectly(e.codec) && combiner.can(e.codec) && room >= e.encodeSeconds) {
        room -= e.encodeSeconds;
        chosen.push_back(b);
        break;
      }
  return chosen;
}

} // namespace sluice::planner
