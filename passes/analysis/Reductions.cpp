// SPDX-License-Identifier: Apache-2.0
// One walk in issue order that knows who wrote each buffer last.
#include "passes/analysis/Reductions.h"

#include "ir/Train.h"
#include "runtime/Ranks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::RunOp;

namespace {

bool isVariable(Value buffer) { return buffer.getDefiningOp<BufferOp>().getVariable().has_value(); }
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

/// One walk over the runs of a program.
class Walk {
public:
  Walk(ModuleOp module)
      : several(module->hasAttr(train::ranksAttribute)), shares(module->hasAttr(train::sharesAttribute)),
        gradientShares(module->hasAttr(train::gradientSharesAttribute)),
        jointNorms(module->hasAttr(train::normRanksAttribute)) {
    if (auto least = module->getAttrOfType<IntegerAttr>(train::sharesAttribute))
      leastRanks = static_cast<int>(least.getInt());
    const bool parameterShares = module->hasAttr(train::parameterSharesAttribute);
    for (auto variable : module.getOps<train::VariableOp>())
      if (parameterShares && variable.isShare())
        wholes[variable.getSymName()] = variable.wholeType();
  }

  LogicalResult run(sched::ProgramOp program) {
    for (auto run : program.getBody().getOps<RunOp>()) {
      const bool together = sched::factsOf(run.getRole()).together;
      if (together && !several) // V9
        return error(run) << (run.getRole() == sched::Role::Reduce ? "sums" : "gathers")
                          << " over ranks in a program for one";
      if (failed(run.getKernel().starts_with("synchronize_") ? synchronize(run)
                 : run.getKernel() == "gather_shares"        ? gatherShares(run)
                 : run.getKernel() == "shares_norm"          ? takeNorm(run)
                 : run.getRole() == sched::Role::Reduce      ? reduce(run)
                 : run.getRole() == sched::Role::Gather      ? gather(run)
                                                             : others(run)))
        return failure();
      for (Value written : run.getOuts())
        writers[written] = run, own.erase(written);
    }
    for (const auto &[parameter, update] : updated)
      if (shares) // V9
        return error(update) << "updates a share of '" << nameOf(parameter) << "', which is never gathered";
    return success();
  }

private:
  bool isWrittenBy(Value buffer, StringRef kernel) {
    RunOp writer = writers.lookup(buffer);
    return writer && writer.getKernel() == kernel;
  }
  bool isShare(Value buffer) { return isWrittenBy(buffer, "reduce_scatter"); }
  bool isSummed(Value buffer) { return isWrittenBy(buffer, "all_reduce") || isShare(buffer); }
  bool isJoint(Value buffer) {
    RunOp writer = writers.lookup(buffer);
    return writer && writer.getKernel().starts_with("synchronize_");
  }

  /// What some ranks have in common of their BatchNorms; of statistics nobody reads a rank's own any more.
  LogicalResult synchronize(RunOp run) {
    if (run.getRole() != sched::Role::Reduce) // V9
      return error(run) << "meets other ranks where it runs as " << sched::stringifyRole(run.getRole());
    if (run.getIns().size() != run.getOuts().size()) // V9
      return error(run) << "makes " << run.getOuts().size() << " tensors of " << run.getIns().size();
    for (size_t i = 0; i < run.getIns().size(); ++i) {
      if (isJoint(run.getIns()[i]) || isSummed(run.getIns()[i])) // V9
        return error(run) << "synchronizes '" << nameOf(run.getIns()[i]) << "', which other ranks have joined already";
      if (run.inType(i) != run.outType(i)) // V9
        return error(run) << "makes " << run.outType(i) << " of '" << nameOf(run.getIns()[i]) << "', which is "
                          << run.inType(i);
      if (run.getKernel() == "synchronize_statistics")
        own.insert(run.getIns()[i]);
    }
    return success();
  }

  /// The room is the last buffer, a variable that is read and written.
  LogicalResult reduce(RunOp run) {
    size_t sums = run.getIns().size();
    if (sums > 1 && isVariable(run.getIns().back()) && !run.getOuts().empty() &&
        run.getIns().back() == run.getOuts().back()) {
      rooms.insert(run.getIns().back());
      --sums;
    }
    if (run.getIns().size() != run.getOuts().size()) // V9
      return error(run) << "makes " << run.getOuts().size() << " sums of " << run.getIns().size();
    for (size_t i = 0; i < sums; ++i) {
      if (isSummed(run.getIns()[i]) || isJoint(run.getIns()[i])) // V9
        return error(run) << "sums '" << nameOf(run.getIns()[i]) << "', which all ranks have summed already";
      const bool scatters = run.getKernel() == "reduce_scatter";
      if (scatters && !gradientShares) // V9
        return error(run) << "scatters '" << nameOf(run.getIns()[i]) << "', of which each rank updates all";
      if (scatters ? run.outType(i) != shareOf(run.inType(i)) : run.inType(i) != run.outType(i)) // V9
        return error(run) << "sums " << run.inType(i) << " of '" << nameOf(run.getIns()[i]) << "' into "
                          << run.outType(i);
    }
    return success();
  }

  /// What a rank has room for of a tensor.
  RankedTensorType shareOf(RankedTensorType whole) const {
    return RankedTensorType::get({sluice::shareOf(whole.getNumElements(), 0, leastRanks).count},
                                 whole.getElementType());
  }

  /// The room is the last buffer, as that of sums.
  LogicalResult takeNorm(RunOp run) {
    if (run.getRole() != sched::Role::Reduce) // V9
      return error(run) << "meets other ranks where it runs as " << sched::stringifyRole(run.getRole());
    if (!isShare(run.getIns()[0])) // V9
      return error(run) << "takes the norm of '" << nameOf(run.getIns()[0]) << "', which is no share of a sum";
    if (run.getIns().size() > 1 && isVariable(run.getIns().back()))
      rooms.insert(run.getIns().back());
    return success();
  }

  /// Of a parameter that is a share of each rank, before this step changes it.
  LogicalResult gatherShares(RunOp run) {
    if (run.getRole() != sched::Role::Gather) // V9
      return error(run) << "meets other ranks where it runs as " << sched::stringifyRole(run.getRole());
    if (run.getIns().size() != 1 || run.getOuts().size() != 1) // V9
      return error(run) << "gathers " << run.getIns().size() << " shares into " << run.getOuts().size() << " tensors";
    const Value share = run.getIns()[0];
    const RankedTensorType whole = wholeOf(share);
    if (!whole) // V9
      return error(run) << "gathers '" << nameOf(share) << "', which is no share of a parameter";
    if (run.outType(0) != whole || run.inType(0) != shareOf(whole)) // V9
      return error(run) << "gathers " << run.inType(0) << " of '" << nameOf(share) << "' into " << run.outType(0)
                        << ", it is " << shareOf(whole) << " of " << whole;
    if (isWrittenBy(share, "update")) // V9
      return error(run) << "gathers '" << nameOf(share) << "' after its update";
    return success();
  }

  /// What the variable in the buffer is a share of; null where there is none, or it is whole.
  RankedTensorType wholeOf(Value buffer) const {
    const auto variable = buffer.getDefiningOp<BufferOp>().getVariable();
    return variable ? wholes.lookup(*variable) : RankedTensorType();
  }

  LogicalResult gather(RunOp run) {
    for (Value parameter : run.getOuts()) {
      if (wholeOf(parameter)) // V9
        return error(run) << "gathers '" << nameOf(parameter) << "' in place, of which there is but a share";
      if (!updated.contains(parameter)) // V9
        return error(run) << "gathers '" << nameOf(parameter) << "', which no rank has updated since";
      updated.erase(parameter);
    }
    return success();
  }

  /// What computes in one rank.
  LogicalResult others(RunOp run) {
    const auto [first, count] = summedOperands(run);
    for (Value in : run.getIns().slice(first, several ? count : 0))
      if (!isSummed(in)) // V9
        return error(run) << "reads '" << nameOf(in) << "' before all ranks have summed it";
    for (Value in : run.getIns())
      if (isShare(in) != (gradientShares && run.getKernel() == "update" && in == run.getIns()[0])) // V9
        return error(run) << (isShare(in) ? "reads a share of '" : "updates a share by all of '") << nameOf(in)
                          << (isShare(in) ? "' as if it were all" : "'");
    for (Value in : run.getIns())
      if (wholeOf(in) && !run.getParameter()) // V9
        return error(run) << "reads '" << nameOf(in) << "', a share, without the shares of other ranks";
    if (run.getKernel() == "update_statistics" && several) // V9
      return error(run) << "updates running statistics by this rank's batch alone";
    for (Value in : run.getIns()) {
      if (own.contains(in)) // V9
        return error(run) << "reads '" << nameOf(in) << "', this rank's statistics, once they were synchronized";
      if (run.getKernel() == "batch_statistics" && jointNorms && !isJoint(in)) // V9
        return error(run) << "takes '" << nameOf(in) << "' into running statistics before it is synchronized";
    }
    for (ValueRange touched : {ValueRange(run.getIns()), ValueRange(run.getOuts())})
      for (Value buffer : touched) {
        if (rooms.contains(buffer)) // V9
          return error(run) << "uses '" << nameOf(buffer) << "', the room of sums over ranks";
        if (shares && updated.contains(buffer)) // V9
          return error(run) << "uses '" << nameOf(buffer) << "' before all ranks have gathered it";
      }
    if (run.getParameter() && !wholeOf(run.getOuts()[0])) // what is a share stays one
      updated[run.getOuts()[0]] = run;
    return success();
  }

  const bool several, shares, gradientShares, jointNorms;
  int leastRanks = 1;                       ///< where there are shares
  llvm::StringMap<RankedTensorType> wholes; ///< of parameters that are shares, by symbol
  llvm::DenseMap<Value, RunOp> writers;
  llvm::MapVector<Value, RunOp> updated; ///< parameters, by this rank alone so far
  llvm::SmallDenseSet<Value, 2> rooms;
  llvm::SmallDenseSet<Value, 16> own; ///< statistics of this rank that were synchronized
};

} // namespace

LogicalResult sluice::checkReductions(ModuleOp module, sched::ProgramOp program) { return Walk(module).run(program); }
