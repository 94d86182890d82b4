// SPDX-License-Identifier: Apache-2.0
// Dependencies are followed from the predicted values backwards.
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

/// The argument that a loss op compares with, or else the only one that `scores` do not depend on and could be compared
/// with by its shape; null where there is none.
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

/// What a value is a view of.
Value rootOf(Value value) {
  while (auto view = dyn_cast_or_null<train::View>(value.getDefiningOp()))
    value = view->getOperand(0);
  return value;
}

bool isProbability(Value value) {
  auto softmax = value.getDefiningOp<train::SoftmaxOp>();
  return (softmax && !softmax.getLogarithm()) || value.getDefiningOp<train::SigmoidOp>();
}

StringAttr nameOf(func::FuncOp function, Value argument) {
  const auto name = function.getArgAttrOfType<StringAttr>(cast<BlockArgument>(argument).getArgNumber(), "train.name");
  return name ? name : StringAttr::get(function.getContext());
}

} // namespace

bool isLossOp(Operation *op) {
  auto kernel = dyn_cast_or_null<train::HasKernel>(op);
  return kernel && kernel.role() == sched::Role::Loss;
}

/// Kept outputs have bytes of their own: an input, a variable or another output would give its bytes twice.
Value Predictions::apart(Value value) {
  const Value root = rootOf(value);
  const bool stands = !root.getDefiningOp() || isa<train::ReadOp>(root.getDefiningOp()) ||
                      llvm::any_of(kept, [&](Value other) { return rootOf(other) == root; });
  if (!stands)
    return value;
  return train::ScaleOp::create(state.builder, value.getLoc(), value.getType(), value, llvm::APFloat(1.0f));
}

/// One result of the function for each value, however many outputs name it. Without a value the output is noted all the
/// same, with the number -1: its loss is reported, it is not predicted.
void Predictions::add(const std::string &name, Value value, const std::string &loss, Value target, double weight,
                      int64_t part) {
  Builder &b = state.builder;
  int64_t number = -1;
  if (value) {
    const auto [known, isNew] = numbers.try_emplace(value, kept.size());
    number = known->second;
    if (isNew)
      kept.push_back(apart(value));
  }
  outputs.push_back(train::OutputAttr::get(b.getContext(), b.getStringAttr(name), b.getStringAttr(loss),
                                           target ? nameOf(function, target) : b.getStringAttr(""),
                                           b.getF64FloatAttr(weight), number, part, value && isProbability(value)));
}

void Predictions::addOthers(const llvm::DenseSet<Value> &unwanted) {
  for (const std::string &name : state.graph.otherOutputs) {
    const Value value = state.values.lookup(name);
    if (!isOfSamples(state, value) || state.assumed.contains(name) || numbers.count(value) ||
        llvm::any_of(sourcesOf(value), [&](Value source) { return unwanted.contains(source); }))
      continue;
    add(name, value);
  }
}

void Predictions::addBesidesOwnLoss(Value loss) {
  std::string name;
  Value first;
  for (const std::string &other : state.graph.otherOutputs)
    if (Value value = state.values.lookup(other);
        !first && isOfSamples(state, value) && !state.assumed.contains(other) && !state.integral.contains(other))
      first = value, name = other;
  if (Operation *op = loss.getDefiningOp(); !first && isLossOp(op) && isOfSamples(state, op->getOperand(0)))
    first = op->getOperand(0), name = "scores";
  const Value target = targetOfOwnLoss(function, loss, first);
  if (!first && !target)
    return;
  add(name, first, "", target);
  if (!first)
    return;
  llvm::DenseSet<Value> unwanted; // what asks for labels is no prediction
  const llvm::DenseSet<Value> sources = sourcesOf(first);
  for (BlockArgument argument : function.getArguments())
    if (target ? argument == target : !sources.contains(argument))
      unwanted.insert(argument);
  addOthers(unwanted);
}

/// Inputs that no kept output depends on are noted as such: a program that predicts does not ask for labels.
SmallVector<Value> Predictions::note() {
  if (outputs.empty())
    return {};
  auto module = function->getParentOfType<ModuleOp>();
  train::setOutputs(module, outputs);
  if (kept.empty())
    return {};
  llvm::DenseSet<Value> sources;
  for (Value value : kept)
    sources.insert_range(sourcesOf(value));
  SmallVector<Attribute> others;
  for (BlockArgument argument : function.getArguments())
    if (!sources.contains(argument))
      others.push_back(nameOf(function, argument));
  if (!others.empty())
    module->setAttr(train::lossInputsAttribute, Builder(function.getContext()).getArrayAttr(others));
  return kept;
}

} // namespace sluice
