// SPDX-License-Identifier: Apache-2.0
// Rebuilding of buffers by inversion, see analysis/InvertedStorages.h.
#include "passes/plan/BufferActions.h"

#include "passes/analysis/InvertedStorages.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// What else such an inversion reads stays as it is: the planner does not know of it, and it must not be made from
/// what is rebuilt.
static void keepOperands(planner::Problem &problem, const PlannedBuffers &buffers, const StorageInversion &found) {
  for (auto [i, operand] : llvm::enumerate(found.op->getOperands()))
    if (int small = i == found.operand ? -1 : buffers.bufferOf[buffers.storages.of(operand)]; small >= 0) {
      problem.buffers[small].producers.clear();
      problem.buffers[small].encodings.clear();
      problem.buffers[small].offloadable = false;
      for (planner::Op &writer : problem.ops)
        writer.recomputable &= !llvm::is_contained(writer.writes, small);
    }
}

// Seconds are those of the undoing, which waits for memory, and of all that runs again for it. An inversion that the
// planner may use must not depend on what it also may take away: of those that save channels the other operands are
// kept.
void sluice::addInversions(planner::Problem &problem, func::FuncOp step, const PlannedBuffers &buffers,
                           const planner::Profile &profile) {
  for (auto &[s, found] : invertedStorages(step, buffers.storages)) {
    planner::Buffer &buffer = problem.buffers[buffers.bufferOf[s]];
    RankedTensorType saved = found.op.savedType(found.operand);
    planner::Inversion inversion;
    for (int source : found.sources)
      inversion.sources.push_back(buffers.bufferOf[source]);
    inversion.latest = found.latest;
    inversion.sideBytes = saved ? bytes(saved) : 0;
    inversion.workspace = found.workspace;
    inversion.fromHalves = !!saved;
    const double n = elements(found.op->getResult(0).getType());
    // BatchNorm and leaky ReLU: reads one tensor and writes one. Sums: also the other addend, and a look at both for
    // cancellation.
    inversion.seconds =
        profile.estimate(OpKind::Norm, 6 * n, saved ? 2.0 * buffer.bytes + inversion.sideBytes : 5.0 * buffer.bytes);
    for (Operation *again : found.reruns)
      if (auto cost = attr::get<attr::Cost>(again))
        inversion.seconds += cost.getSeconds().getValueAsDouble();
    // The most that guards let through: see InversionRules.h.
    const bool floats = buffer.elementBytes == sizeof(float);
    inversion.error = saved ? (floats ? 1e-5 : 2e-2) : (floats ? 6.2e-5 : 1.6e-2);
    buffer.inversion = inversion;
    if (saved)
      keepOperands(problem, buffers, found);
  }
}
