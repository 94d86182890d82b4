// SPDX-License-Identifier: Apache-2.0
// The ops of steps that several ranks take together: verifiers and kernels.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

LogicalResult SumBatchesOp::verifySymbolUses(SymbolTableCollection &table) {
  if (getSums().empty() || getNumResults() != getSums().size()) // C1
    return emitOpError() << "makes " << getNumResults() << " values of " << getSums().size()
                         << " sums; it needs one sum or more, and makes a value of each";
  for (Value sum : getSums()) // C1
    if (sum.getType() != getX().getType())
      return emitOpError() << "adds " << getX().getType() << " to '" << variableOf(sum).getValue() << "', which is "
                           << sum.getType();
  return checkRoles(*this, table, getSums(), Role::Gradient);
}

LogicalResult BatchStatisticsOp::verify() {
  const auto type = ranked(getShares());
  if (type.getRank() != 2 || type.getDimSize(0) != 2 || type.getDimSize(1) != extents(getMean())[0]) // C1
    return emitOpError() << "makes " << type << " of statistics of " << extents(getMean())[0] << " channels";
  return success();
}

LogicalResult ApplyStatisticsOp::verifySymbolUses(SymbolTableCollection &table) {
  const auto type = ranked(getSum());
  if (type.getRank() != 2 || type.getDimSize(0) != 2 || type.getDimSize(1) != extents(getRunningMean())[0]) // C1
    return emitOpError() << "takes " << type << " for statistics of " << extents(getRunningMean())[0] << " channels";
  return checkRoles(*this, table, {getRunningMean(), getRunningVar()}, Role::State); // C1
}

// In: what is added, sums; out: sums.
KERNEL(SumBatchesOp) {
  SmallVector<Slot> sums;
  for (size_t i = 0; i < getSums().size(); ++i)
    sums.push_back(out(static_cast<int64_t>(i)));
  return KernelCalls(*this).function("sumBatches", in(0), ArrayRef<Slot>(sums), getWeighted());
}

KERNEL(AllReduceOp) {
  KernelCalls calls(*this);
  return calls.object(arguments::AllReduce{calls.shape(in(0)), getMean(), getWeighted(), getOrdered()}, "run",
                      {in(0), out(0), scratchSlot});
}

KERNEL(BatchStatisticsOp) {
  KernelCalls calls(*this);
  const arguments::BatchStatistics kernel{calls.shape(in(0))[0], static_cast<int64_t>(getCount()),
                                          getMomentum().convertToFloat(), getEpsilon().convertToFloat()};
  return calls.object(kernel, "run", {in(0), in(1), out(0)});
}

KERNEL(ApplyStatisticsOp) {
  return KernelCalls(*this).function("applyStatistics", {in(0), out(0), out(1)}, getMomentum().convertToFloat());
}
