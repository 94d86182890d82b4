// SPDX-License-Identifier: Apache-2.0
// Dependencies are followed from the predicted value backwards.
#include "frontend/Predicted.h"

#include "ir/TensorName.h"

using namespace mlir;

namespace sluice {
namespace {

/// Whether a value has numbers for each sample of the batch.
bool isOfSamples(const FunctionImport &state, Value value) {
  return value && value.getDefiningOp() && typeOf(value).getElementType().isF32() && !shapeOf(value).empty() &&
         shapeOf(value)[0] == state.graph.batch;
}

/// All values that `value` is computed from.
llvm::DenseSet<Value> sourcesOf(Value value) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> open;
  if (value)
    open.push_back(value);
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (seen.insert(next).second && next.getDefiningOp())
      open.append(next.getDefiningOp()->operand_begin(), next.getDefiningOp()->operand_end());
  }
  return seen;
}

/// Whether classes, or numbers, of this shape can be compared with the scores.
bool isComparable(Value scores, Value target) {
  auto shape = shapeOf(scores), other = shapeOf(target);
  if (typeOf(target).getElementType().isF32())
    return shape == other;
  for (size_t classes : {size_t{1}, shape.size() - 1}) {
    SmallVector<int64_t> left(shape);
    if (shape.size() < 2)
      return false;
    left.erase(left.begin() + classes);
    if (ArrayRef<int64_t>(left) == other)
      return true;
  }
  return false;
}

} // namespace

bool isLossOp(Operation *op) {
  auto kernel = dyn_cast_or_null<train::HasKernel>(op);
  return kernel && kernel.role() == sched::Role::Loss;
}

Value predictedBesides(FunctionImport &state, Value loss) {
  for (const std::string &name : state.graph.otherOutputs)
    if (Value value = state.values.lookup(name);
        isOfSamples(state, value) && !state.assumed.contains(name) && !state.integral.contains(name))
      return value;
  Operation *op = loss.getDefiningOp();
  return isLossOp(op) && isOfSamples(state, op->getOperand(0)) ? op->getOperand(0) : Value();
}

Value targetOfOwnLoss(func::FuncOp function, Value loss, Value scores) {
  if (Operation *op = loss.getDefiningOp(); isLossOp(op)) {
    Value target = op->getOperand(1);
    while (auto view = target.getDefiningOp<train::ReshapeOp>())
      target = view.getX();
    return isa<BlockArgument>(target) ? target : Value();
  }
  if (!scores)
    return {};
  const llvm::DenseSet<Value> sources = sourcesOf(scores);
  Value found;
  for (BlockArgument argument : function.getArguments()) {
    if (sources.contains(argument) || !isComparable(scores, argument))
      continue;
    if (found)
      return {};
    found = argument;
  }
  return found;
}

void notePrediction(func::FuncOp function, Value scores, Value target) {
  Builder builder(function.getContext());
  auto module = function->getParentOfType<ModuleOp>();
  const auto nameOf = [&](BlockArgument argument) {
    return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
  };
  if (target)
    module->setAttr(train::targetAttribute, nameOf(cast<BlockArgument>(target)));
  if (!scores)
    return;
  auto softmax = scores.getDefiningOp<train::SoftmaxOp>();
  if ((softmax && !softmax.getLogarithm()) || scores.getDefiningOp<train::SigmoidOp>())
    module->setAttr(train::probabilitiesAttribute, builder.getUnitAttr());
  const llvm::DenseSet<Value> sources = sourcesOf(scores);
  SmallVector<Attribute> others;
  for (BlockArgument argument : function.getArguments())
    if (!sources.contains(argument))
      others.push_back(nameOf(argument));
  if (!others.empty())
    module->setAttr(train::lossInputsAttribute, builder.getArrayAttr(others));
}

} // namespace sluice
