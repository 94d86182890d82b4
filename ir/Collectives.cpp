// SPDX-License-Identifier: Apache-2.0
// The ops of steps that several ranks take together: verifiers and kernels.
#include "ir/Rules.h"
#include "runtime/Collective.h"

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

static LogicalResult checkSummed(Operation *op, OperandRange xs) {
  if (xs.empty() || op->getNumResults() != op->getNumOperands()) // C1
    return op->emitOpError() << "makes " << op->getNumResults() << " values of " << op->getNumOperands()
                             << "; it sums one tensor or more, and makes a value of each and of its room";
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkSummed(*this, getXs())))
    return failure();
  for (auto [x, made] : llvm::zip(getOperands(), getResults())) // C1
    if (x.getType() != made.getType())
      return emitOpError() << "makes " << made.getType() << " of " << x.getType();
  return success();
}

/// A vector, shorter than so many elements unless there is one.
static bool isShare(Type type, int64_t elements) {
  const auto share = cast<RankedTensorType>(type);
  return share.getRank() == 1 && share.getDimSize(0) <= std::max<int64_t>(1, elements - 1);
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(checkSummed(*this, getXs())))
    return failure();
  for (auto [x, made] : llvm::zip(getXs(), getSums())) // C1
    if (!isShare(made.getType(), elements(x.getType())))
      return emitOpError() << "makes " << made.getType() << " as a share of " << x.getType();
  if (getRoom() && getRoom().getType() != getResults().back().getType()) // C1
    return emitOpError() << "makes " << getResults().back().getType() << " of a room of " << getRoom().getType();
  return success();
}

LogicalResult SharesNormOp::verify() {
  const unsigned wanted = getRoom() ? 2 : 1;
  if (getNumResults() != wanted || ranked(getResult(0)).getRank() != 0 ||
      (getRoom() && getRoom().getType() != getResult(1).getType())) // C1
    return emitOpError() << "makes " << getResultTypes() << "; it makes a scalar, and its room where it has one";
  if (!isShare(getGradient().getType(), getElements())) // C1
    return emitOpError() << "has " << getGradient().getType() << " as a share of " << getElements() << " elements";
  return success();
}

static int64_t elementsOf(OperandRange xs) {
  int64_t count = 0;
  for (Value x : xs)
    count += elements(x.getType());
  return count;
}

int64_t AllReduceOp::roomElements() { return roomOfSum(getXs().size(), elementsOf(getXs()), getOrdered()); }
int64_t ReduceScatterOp::roomElements() { return roomOfShares(elementsOf(getXs()), getWeighted()); }
int64_t SharesNormOp::roomElements() { return roomOfNorm(getElements()); }

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

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &table) {
  if (getParameters().empty() || getNumResults() != getNumOperands()) // C1
    return emitOpError() << "makes " << getNumResults() << " values of " << getNumOperands()
                         << "; it gathers one parameter or more, and makes a value of each";
  return checkRoles(*this, table, getParameters(), Role::Parameter);
}

LogicalResult GatherSharesOp::verifySymbolUses(SymbolTableCollection &table) { // C1
  auto read = getShare().getDefiningOp<ReadOp>();
  auto variable = read ? table.lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr()) : VariableOp();
  if (!variable || !variable.isShare())
    return emitOpError() << "gathers " << getShare().getType() << ", which is no share of a parameter";
  if (variable.wholeType() != getWhole().getType())
    return emitOpError() << "makes " << getWhole().getType() << " of the shares of '" << variable.getSymName()
                         << "', which is " << variable.wholeType();
  return success();
}

Value GatherSharesOp::original() { return getShare(); }
std::string GatherSharesOp::storageSuffix() { return "_whole"; }

// In: what is added, sums; out: sums.
KERNEL(SumBatchesOp) {
  SmallVector<Slot> sums;
  for (size_t i = 0; i < getSums().size(); ++i)
    sums.push_back(out(static_cast<int64_t>(i)));
  return KernelCalls(*this).function("sumBatches", in(0), ArrayRef<Slot>(sums), getWeighted());
}

/// In: tensors, room; out: sums, room.
template <typename Op, typename... Flags> static Calls summed(Op op, StringRef function, Flags... flags) {
  SmallVector<Slot> xs, sums;
  for (size_t i = 0; i < op.getXs().size(); ++i) {
    xs.push_back(in(static_cast<int64_t>(i)));
    sums.push_back(out(static_cast<int64_t>(i)));
  }
  const Slot room = op.getRoom() ? in(static_cast<int64_t>(xs.size())) : noSlot;
  return KernelCalls(op).function(function, room, ArrayRef<Slot>(xs), ArrayRef<Slot>(sums), flags...);
}

KERNEL(AllReduceOp) { return summed(*this, "allReduce", getMean(), getWeighted(), getOrdered()); }
KERNEL(ReduceScatterOp) { return summed(*this, "reduceScatter", getWeighted()); }

// In: share, norm of those before, room; out: norm, room.
KERNEL(SharesNormOp) {
  const Slot before = getBefore() ? in(1) : noSlot, room = getRoom() ? in(getBefore() ? 2 : 1) : noSlot;
  return KernelCalls(*this).object(arguments::SharesNorm{static_cast<int64_t>(getElements())}, "run",
                                   {in(0), before, room, out(0), scratchSlot});
}

KERNEL(AllGatherOp) {
  SmallVector<Slot> parameters;
  for (size_t i = 0; i < getParameters().size(); ++i)
    parameters.push_back(out(static_cast<int64_t>(i)));
  return KernelCalls(*this).function("allGather", {}, ArrayRef<Slot>(parameters));
}

KERNEL(GatherSharesOp) { return KernelCalls(*this).function("gatherShares", {in(0), out(0)}); }

KERNEL(BatchStatisticsOp) {
  KernelCalls calls(*this);
  const arguments::BatchStatistics kernel{calls.shape(in(0))[0], static_cast<int64_t>(getCount()),
                                          getMomentum().convertToFloat(), getEpsilon().convertToFloat(),
                                          static_cast<int64_t>(getRanks())};
  return calls.object(kernel, "run", {in(0), in(1), out(0)});
}

KERNEL(ApplyStatisticsOp) {
  return KernelCalls(*this).function("applyStatistics", {in(0), out(0), out(1)}, getMomentum().convertToFloat(),
                                     static_cast<int64_t>(getRanks()));
}

/// In: two vectors of channels; out: the same of several ranks.
static Calls synchronized(Operation *op, StringRef method, uint64_t ranks, float epsilon) {
  KernelCalls calls(op);
  const arguments::SynchronizedNorm kernel{calls.shape(in(0))[0], static_cast<int64_t>(ranks), epsilon};
  return calls.object(kernel, method, {in(0), in(1), out(0), out(1), scratchSlot});
}

KERNEL(SynchronizeStatisticsOp) { return synchronized(*this, "statistics", getRanks(), getEpsilon().convertToFloat()); }
KERNEL(SynchronizeSumsOp) { return synchronized(*this, "sums", getRanks(), 0); }
KERNEL(UnitWeightOp) { return KernelCalls(*this).function("unitWeight", {out(0)}); }
