// SPDX-License-Identifier: Apache-2.0
// One walk in issue order that knows who wrote each buffer last.
#include "passes/analysis/Reductions.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::RunOp;

namespace {

StringRef nameOf(Value buffer) { return buffer.getDefiningOp<BufferOp>().getName(); }

/// The first of the operands that are gradients or shares of statistics, to be read once all ranks have summed them,
/// and how many there are.
std::pair<size_t, size_t> summedOperands(RunOp run) {
  const StringRef kernel = run.getKernel();
  if (kernel == "check_gradients") // after the scale and its two counts
    return {3, run.getIns().size() - 3};
  return {0, kernel == "update" || kernel == "gradient_norm" || kernel == "apply_statistics" ? 1 : 0};
}

InFlightDiagnostic error(RunOp run) { return run.emitOpError() << "V9: '" << train::nodeName(run.getLoc()) << "' "; }

} // namespace

LogicalResult sluice::checkReductions(ModuleOp module, sched::ProgramOp program) {
  const bool several = module->hasAttr(train::ranksAttribute);
  llvm::DenseMap<Value, RunOp> writers;
  const auto isSummed = [&](Value buffer) {
    RunOp writer = writers.lookup(buffer);
    return writer && writer.getRole() == sched::Role::Reduce;
  };
  for (auto run : program.getBody().getOps<RunOp>()) {
    if (run.getRole() == sched::Role::Reduce) {
      if (!several) // V9
        return error(run) << "sums over ranks in a program for one";
      if (isSummed(run.getIns()[0])) // V9
        return error(run) << "sums '" << nameOf(run.getIns()[0]) << "', which all ranks have summed already";
    }
    const auto [first, count] = summedOperands(run);
    for (Value in : run.getIns().slice(first, several ? count : 0))
      if (!isSummed(in)) // V9
        return error(run) << "reads '" << nameOf(in) << "' before all ranks have summed it";
    if (run.getKernel() == "update_statistics" && several) // V9
      return error(run) << "updates running statistics by this rank's batch alone";
    for (Value written : run.getOuts())
      writers[written] = run;
  }
  return success();
}
