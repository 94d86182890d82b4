// SPDX-License-Identifier: Apache-2.0
// One walk over the ops of an evaluation in reverse order: readers come before what they read.
#include "passes/DecodeAnalysis.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

std::optional<DecodedScores> sluice::decodedScores(ModuleOp module, func::FuncOp evaluate) {
  SmallVector<Value> kept;
  for (Value value : evaluate.getBody().front().getTerminator()->getOperands())
    if (typeOf(value).getRank() > 0)
      kept.push_back(value);
  for (auto [number, output] : llvm::enumerate(outputsOf(module))) {
    if (output.getKept() < 0 || output.getKept() >= static_cast<int64_t>(kept.size()))
      continue;
    const Value value = kept[static_cast<size_t>(output.getKept())];
    if (typeOf(value).getRank() == 3 && typeOf(value).getElementType().isF32() && typeOf(value).getDimSize(1) > 1)
      return DecodedScores{value, static_cast<int64_t>(number)};
  }
  return std::nullopt;
}

TextExtents sluice::textExtents(func::FuncOp evaluate, Value scores) {
  TextExtents extents{typeOf(scores).getDimSize(0), typeOf(scores).getDimSize(1), {}};
  for (BlockArgument argument : evaluate.getArguments())
    if (typeOf(argument).getShape() == ArrayRef<int64_t>{extents.texts, extents.tokens})
      extents.dependent.insert(argument);
  for (Operation &op : evaluate.getOps())
    if (llvm::any_of(op.getOperands(), [&](Value v) { return extents.dependent.contains(v); }))
      extents.dependent.insert(op.result_begin(), op.result_end());
  return extents;
}

bool DecodeAnalysis::run() {
  if (extents.dependent.empty())
    return refuse(scores.getDefiningOp(), "has no input [texts, tokens]");
  add({scores, {Need::Token, {{1, 1, 1}, {0, 1, 1}}}}, scores.getDefiningOp());
  for (Operation &op : llvm::reverse(evaluate.getBody().front().without_terminator()))
    if (!visit(&op))
      return false;
  for (BlockArgument argument : evaluate.getArguments())
    if (!visit(argument))
      return false;
  return true;
}

bool DecodeAnalysis::refuse(Operation *op, const std::string &reason) {
  culprit = op, why = reason;
  return false;
}

bool DecodeAnalysis::add(const NeededValue &needed, Operation *reader) {
  SmallVector<Need, 2> &known = needs[needed.value];
  if (llvm::is_contained(known, needed.need))
    return true;
  const auto isToken = [](const Need &need) { return need.kind == Need::Token; };
  if (isToken(needed.need) && llvm::any_of(known, isToken))
    return refuse(reader, "reads tokens along two dimensions of one tensor");
  known.push_back(needed.need);
  return true;
}

/// Whether its rows can be taken: as those of a table, by numbers that floats hold.
bool DecodeAnalysis::areRows(Value value) const {
  return typeOf(value).getElementType().isF32() && extents.texts * extents.tokens <= (int64_t{1} << 24);
}

/// Rows of a value that are taken of all of it ask for that, too: the list grows.
bool DecodeAnalysis::visit(Operation *op) {
  for (OpResult result : llvm::drop_begin(op->getResults(), 1))
    if (needs.count(result))
      return refuse(op, "is read by more than its first result");
  if (op->getNumResults() == 0 || !needs.count(op->getResult(0)))
    return true;
  for (size_t i = 0; i < needs[op->getResult(0)].size(); ++i) {
    const Need need = needs[op->getResult(0)][i];
    if (need.kind == Need::Row && !passesRows(op, need, extents)) {
      if (!areRows(op->getResult(0)))
        return refuse(op, "is read at places, which is for numbers of 32 bits, 2^24 rows of all texts at most");
      if (!add({op->getResult(0), {Need::Whole}}, op))
        return false;
      continue;
    }
    const NeededOperands needed = operandsOf(op, need);
    if (!needed.why.empty())
      return refuse(op, needed.why);
    for (const NeededValue &each : needed.values)
      if (!add(each, op))
        return false;
  }
  return true;
}

NeededOperands DecodeAnalysis::operandsOf(Operation *op, const Need &need) {
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention || need.kind != Need::Token)
    return neededOperands(op, need, extents);
  auto &made = attentions[op];
  made = std::make_unique<DecodeAttention>(attention, extents);
  return made->needs(need);
}

bool DecodeAnalysis::visit(BlockArgument argument) {
  if (!needs.count(argument))
    return true;
  Operation *reader = *argument.user_begin();
  for (size_t i = 0; i < needs[argument].size(); ++i) {
    const Need need = needs[argument][i];
    const bool textsFirst = extents.texts == 1 || need.axes.texts == TensorAxis{0, 1, 1};
    if (need.kind == Need::Token && !(need.axes.tokens == TensorAxis{1, 1, 1} && textsFirst))
      return refuse(reader, "takes the texts of a batch for its tokens");
    if (need.kind == Need::Row && (!areRows(argument) || !add({argument, {Need::Whole}}, reader)))
      return refuse(reader, "reads places of an input");
  }
  return true;
}
