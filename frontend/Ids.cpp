// SPDX-License-Identifier: Apache-2.0
// Integers that kernels index with: inputs of the model, constants, and what the graph computes from either. Arithmetic
// on integers is in float32, exact up to 2^24; kernels look at each id, so that a wrong one ends a step and reads
// nothing that is not there.
#include "frontend/NodeImport.h"
#include "ir/Train.h"

using namespace mlir;

namespace sluice {
namespace {

constexpr int64_t mostExact = int64_t(1) << 24;

bool isInteger(Value value) { return typeOf(value).getElementType().isInteger(64); }

/// What `value` is but for its type, its shape, or the place of its elements; null where that is not one value.
Value movedFrom(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<train::CastOp, train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BroadcastToOp>(op))
    return {};
  auto broadcast = dyn_cast<train::BroadcastToOp>(op);
  return broadcast && !broadcast.getFactor().isExactlyValue(1) ? Value() : op->getOperand(0);
}

/// The arguments of the function of which `value` has the elements.
void findArguments(Value value, llvm::SmallSetVector<BlockArgument, 2> &found) {
  SmallVector<Value> next = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!next.empty()) {
    Value at = next.pop_back_val();
    if (!seen.insert(at).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(at))
      found.insert(argument);
    else if (auto join = at.getDefiningOp<train::ConcatOp>())
      next.append(join.getXs().begin(), join.getXs().end());
    else if (Value from = movedFrom(at))
      next.push_back(from);
  }
}

} // namespace

Value NodeImport::integerData(int input) {
  auto found = has(input) ? function.values.find(node.input(input)) : function.values.end();
  Value origin = found != function.values.end() ? found->second : Value();
  while (auto view = origin ? origin.getDefiningOp<train::ReshapeOp>() : train::ReshapeOp())
    origin = view.getX();
  return origin && isa<BlockArgument>(origin) && isInteger(origin) ? found->second : Value();
}

void NodeImport::boundIds(Value ids, int64_t limit, std::optional<int64_t> ignored) {
  llvm::SmallSetVector<BlockArgument, 2> arguments;
  findArguments(ids, arguments);
  for (BlockArgument argument : arguments) {
    auto step = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    if (name && isInteger(argument))
      train::addIdLimit(step->getParentOfType<ModuleOp>(), name.getValue(), limit, ignored);
  }
}

Value NodeImport::idsOf(Value numbers, int64_t limit, const std::string &what) {
  if (!numbers || isInteger(numbers))
    return numbers;
  if (limit > mostExact) {
    (void)error(what + " are computed, in float32, which holds whole numbers up to " + std::to_string(mostExact) +
                ", but name " + std::to_string(limit) + " places; let an input of the model bring them");
    return {};
  }
  auto type = RankedTensorType::get(shapeOf(numbers), function.builder.getI64Type());
  auto op = train::CastOp::create(function.builder, location, type, numbers);
  return finish(op) ? op.getY() : Value();
}

Value NodeImport::ids(int input, int64_t limit) {
  if (Value data = integerData(input))
    return data;
  const std::string what = "indices '" + (has(input) ? node.input(input) : "") + "'";
  const HostTensor *value = known(input);
  if (!value && isIntegral(input)) {
    Value data = moved(input);
    if (data)
      boundIds(data, limit);
    return idsOf(data, limit, what);
  }
  if (!value || !value->integral) {
    (void)error(what + " must be integers: an input of the model, whose values are checked when data are read, a " +
                "constant, or computed from these");
    return {};
  }
  HostTensor checked = *value;
  for (int64_t &id : checked.ints) {
    if (id < -limit || id >= limit) {
      (void)error("index " + std::to_string(id) + " is outside the extent " + std::to_string(limit));
      return {};
    }
    id += id < 0 ? limit : 0;
  }
  return indices(std::move(checked), "indices");
}

} // namespace sluice
