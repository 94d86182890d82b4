// SPDX-License-Identifier: Apache-2.0
// Numbers the stages densely and derives the chain from the live bytes of the program that keeps everything.
#include "passes/strategies/Stages.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace sluice::planner {

// Numbers of the linearized program may have gaps, and backward ops may name stages that no forward op has: they go to
// the next one that there is.
Stages::Stages(const Problem &problem, int most)
    : problem(problem), born(problem.buffers.size(), -1), lastRead(problem.buffers.size(), -1),
      dense(problem.ops.size(), 0) {
  std::map<int, int> number;
  for (const Op &op : problem.ops)
    if (op.phase == Phase::Forward)
      number.emplace(op.stage, 0);
  if (number.empty())
    number.emplace(0, 0);
  const int all = number.size(), group = most > 0 ? (all + most - 1) / most : 1;
  int next = 0;
  for (auto &[stage, index] : number)
    index = next++ / group;
  next = (all + group - 1) / group;
  saved.resize(next);
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    auto at = number.lower_bound(op.stage);
    dense[k] = at == number.end() ? next - 1 : at->second;
    if (op.phase != Phase::Forward)
      continue;
    for (int b : op.writes)
      if (born[b] < 0) {
        born[b] = dense[k];
        if (problem.buffers[b].activation)
          saved[dense[k]].push_back(b);
      }
    for (int b : op.reads)
      lastRead[b] = std::max(lastRead[b], dense[k]);
  }
}

// What an op needs beyond the x and saved bytes up to its stage is extra: gradients, temporaries and workspaces, read
// off live bytes, which count them all.
Chain Stages::chain() const {
  const int n = count();
  Chain c;
  c.uF.assign(n, 0);
  c.uB = c.exF = c.exB = c.saved = c.uF;
  c.x.assign(n + 1, 0);
  c.y = c.x;
  c.bandwidth = std::min(problem.link.d2h, problem.link.h2d);
  std::vector<double> below(n + 1, 0); // bytes of x_0..x_(i+1) and what is saved along
  for (int i = 0; i < n; ++i) {
    for (int b : saved[i])
      (crosses(b, 1) ? c.x[i + 1] : c.saved[i]) += aligned(problem, problem.buffers[b].bytes);
    below[i + 1] = below[i] + c.x[i + 1] + c.saved[i];
  }
  const Program program = expand(problem, keepPlan(problem));
  const std::vector<Bytes> live = liveBytes(problem, program);
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const bool forward = problem.ops[k].phase == Phase::Forward;
    const int i = dense[k];
    (forward ? c.uF : c.uB)[i] += problem.ops[k].seconds;
    double &extra = (forward ? c.exF : c.exB)[i];
    extra = std::max(extra, live[program.stepOf[k]] - problem.base - below[i + 1]);
  }
  return c;
}

// Bytes that F_i has made and that are no x yet are extra of the stages that hand them on, so that nothing is there for
// free.
Chain Stages::tensorChain() const {
  const Chain units = chain();
  Chain c;
  c.bandwidth = units.bandwidth;
  c.x = {units.x[0]};
  for (int i = 0; i < count(); ++i) {
    std::vector<double> tensors;
    for (int b : saved[i])
      if (!crosses(b, 1))
        tensors.push_back(static_cast<double>(aligned(problem, problem.buffers[b].bytes)));
    tensors.push_back(units.x[i + 1]);
    double later = std::accumulate(tensors.begin(), tensors.end(), 0.0); // made by F_i, not yet an x
    for (size_t k = 0; k < tensors.size(); ++k) {
      later -= tensors[k];
      c.x.push_back(tensors[k]);
      c.uF.push_back(k == 0 ? units.uF[i] : 0);
      c.uB.push_back(k == 0 ? units.uB[i] : 0);
      c.exF.push_back(later + (k == 0 ? units.exF[i] : 0));
      c.exB.push_back(later + (k == 0 ? units.exB[i] : 0));
    }
  }
  c.saved.assign(c.uF.size(), 0);
  c.y.assign(c.x.size(), 0);
  return c;
}

} // namespace sluice::planner
