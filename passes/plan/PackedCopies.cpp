// SPDX-License-Identifier: Apache-2.0
// Codecs of copies, after a strategy has chosen what is copied, see PackedCopies.h.
#include "passes/plan/PackedCopies.h"
#include "passes/analysis/Storages.h"
#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"
#include "runtime/Codec.h"
#include "runtime/PoolIndex.h"

using namespace sluice;
using planner::Action;

void sluice::packCopies(const planner::Problem &problem, const PlanRequest &request, planner::Plan &plan) {
  for (auto [index, d] : llvm::enumerate(plan.decisions)) {
    const planner::Buffer &buffer = problem.buffers[index];
    if (request.codec == Codec::None || d.action != Action::Offload || d.codec || !buffer.compared)
      continue;
    const Codec form = request.codec == Codec::Zvc ? Codec::Zvc : packedForm(*factsOf(request.codec), *buffer.compared);
    if (form && packsOnCopies(problem, static_cast<int>(index), form) && // else indices or statistics
        (form.kind != Codec::Zvc || planner::zerosPay(problem, static_cast<int>(index), request.pool > 0)) &&
        planner::mayRound(problem, plan, static_cast<int>(index), form))
      d.codec = form;
  }
}

/// Slots for what has a known size; tensors packed by their zeros share the pool, whose size bounds them, since how
/// many zeros they have is only known when a step runs.
int64_t sluice::hostBytes(const planner::Problem &problem, const PlanRequest &request, planner::Plan plan) {
  packCopies(problem, request, plan);
  int64_t slots = 0, pooled = 0;
  for (auto [index, d] : llvm::enumerate(plan.decisions)) {
    if (d.action != Action::Offload || problem.buffers[index].visits)
      continue;
    const int64_t raw = problem.buffers[index].bytes;
    const bool zeros = d.codec.kind == Codec::Zvc;
    (zeros && request.pool > 0 ? pooled : slots) +=
        slotBytes(zeros ? zvcTableBytes(raw) + raw : planner::copiedBytes(problem, static_cast<int>(index), d));
  }
  return slots + std::min(pooled + poolIndexBytes(pooled), request.pool);
}
