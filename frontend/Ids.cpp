// SPDX-License-Identifier: Apache-2.0
// Integers that kernels index with: inputs of the model, constants, and what the graph computes from either. Arithmetic
// on integers is in float32, exact up to 2^24; kernels look at each id, so that a wrong one ends a step and reads
// nothing that is not there.
#include "frontend/NodeImport.h"
#include "ir/Train.h"

#include <cmath>
#include <limits>

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

/// Whole numbers [lower, upper), and one more that is allowed. Without a bound: the least and the largest number.
struct Allowed {
  static constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  int64_t lower, upper;
  std::optional<int64_t> ignored;

  /// What numbers may be to which one from [low, high] is added, whichever it is.
  Allowed shifted(int64_t low, int64_t high) const {
    return {lower == least ? least : lower - high, upper == most ? most : upper - low,
            ignored && low == high ? std::optional(*ignored - low) : std::nullopt};
  }
  Allowed negated() const {
    return {upper == most ? least : 1 - upper, lower == least ? most : 1 - lower,
            ignored ? std::optional(-*ignored) : std::nullopt};
  }
  /// What numbers may be that are limited to [low, high] then: what that allows anyway is no matter of the numbers.
  Allowed clipped(double low, double high) const {
    const bool below = lower != least && std::ceil(low) >= static_cast<double>(lower),
               above = upper != most && std::floor(high) < static_cast<double>(upper);
    return {below ? least : lower, above ? most : upper, std::nullopt};
  }
};

/// The least and the largest of a constant's elements, all of them whole; nothing where it is none.
std::optional<std::pair<int64_t, int64_t>> wholeConstant(Value value) {
  while (Value from = movedFrom(value))
    value = from;
  auto read = value.getDefiningOp<train::ReadOp>();
  auto variable = read ? read->getParentOfType<ModuleOp>().lookupSymbol<train::VariableOp>(read.getVariable())
                       : train::VariableOp();
  auto elements =
      variable && variable.getValue() ? dyn_cast<DenseFPElementsAttr>(*variable.getValue()) : DenseFPElementsAttr();
  if (!elements || elements.empty())
    return std::nullopt;
  std::pair<int64_t, int64_t> ends{mostExact, -mostExact};
  for (const llvm::APFloat &element : elements) {
    const double number = element.convertToDouble();
    if (!(std::abs(number) <= static_cast<double>(mostExact)) || number != std::floor(number))
      return std::nullopt;
    ends = {std::min(ends.first, static_cast<int64_t>(number)), std::max(ends.second, static_cast<int64_t>(number))};
  }
  return ends;
}

/// The value of which `value` is a copy that was moved, shifted or limited, and what is allowed there.
std::optional<std::pair<Value, Allowed>> shiftedFrom(Value value, const Allowed &allowed) {
  if (Value from = movedFrom(value))
    return std::pair(from, allowed);
  if (auto clip = value.getDefiningOp<train::ClipOp>())
    return std::pair(clip.getX(), allowed.clipped(clip.getMin().convertToDouble(), clip.getMax().convertToDouble()));
  if (auto scale = value.getDefiningOp<train::ScaleOp>(); scale && scale.getFactor().isExactlyValue(-1))
    return std::pair(scale.getX(), allowed.negated());
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<train::AddOp, train::SubOp>(op))
    return std::nullopt;
  const bool subtracts = isa<train::SubOp>(op);
  if (auto right = wholeConstant(op->getOperand(1)))
    return std::pair(op->getOperand(0), subtracts ? allowed.shifted(-right->second, -right->first)
                                                  : allowed.shifted(right->first, right->second));
  if (auto left = wholeConstant(op->getOperand(0))) {
    const Allowed rest = allowed.shifted(left->first, left->second);
    return std::pair(op->getOperand(1), subtracts ? rest.negated() : rest);
  }
  return std::nullopt;
}

/// Calls `found` with the arguments of the function whose elements make up `value`, and what is allowed of them.
void eachArgument(Value value, const Allowed &allowed, llvm::function_ref<void(BlockArgument, const Allowed &)> found) {
  constexpr size_t mostValues = 1000;
  SmallVector<std::pair<Value, Allowed>> next = {{value, allowed}};
  for (size_t seen = 0; !next.empty() && seen < mostValues; ++seen) {
    auto [at, there] = next.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(at))
      found(argument, there);
    else if (auto join = at.getDefiningOp<train::ConcatOp>())
      for (Value part : join.getXs())
        next.emplace_back(part, there);
    else if (auto from = shiftedFrom(at, there))
      next.push_back(*from);
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

/// Goes back from the ids to the inputs they came of and moves the range along with every shift on the way.
void NodeImport::boundIds(Value ids, int64_t limit, std::optional<int64_t> ignored) {
  eachArgument(ids, {0, limit, ignored}, [&](BlockArgument argument, const Allowed &allowed) {
    auto step = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    if (name && isInteger(argument) && (allowed.lower != Allowed::least || allowed.upper != Allowed::most))
      train::addIdLimit(step->getParentOfType<ModuleOp>(), name.getValue(),
                        {allowed.lower, allowed.upper, allowed.ignored});
  });
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

/// Three ways, the cheapest first: an input's integers go to kernels as they are, computed ones are cast from float32,
/// constants are checked here and counted from 0, for kernels know no ids from the end.
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
