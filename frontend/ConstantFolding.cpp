// SPDX-License-Identifier: Apache-2.0
// Table of folded ops: elementwise arithmetic here, ops that move elements in ConstantMovement.cpp.
#include "frontend/ConstantFolding.h"
#include "frontend/Attributes.h"
#include "frontend/ConstantMovement.h"
#include "frontend/ElementTypes.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

using IntRule = int64_t (*)(int64_t, int64_t);
using FloatRule = double (*)(double, double);

/// An elementwise op of two operands; the integer rule of a division may not see a zero divisor.
Result<HostTensor> binary(const HostTensor &a, const HostTensor &b, IntRule onInts, FloatRule onFloats, bool divides,
                          bool compares) {
  auto shape = broadcastShapes(a.shape, b.shape);
  if (!shape)
    return Error{"shapes " + shapeText(a.shape) + " and " + shapeText(b.shape) + " do not broadcast"};
  bool integral = a.integral && b.integral;
  auto result = HostTensor::zeros(*shape, integral || compares);
  if (!result)
    return tooLarge(*shape);
  for (int64_t i = 0; i < result->size(); ++i) {
    int64_t j = broadcastIndex(i, *shape, a.shape), k = broadcastIndex(i, *shape, b.shape);
    if (integral && divides && b.ints[k] == 0)
      return Error{"division of the constant " + std::to_string(a.ints[j]) + " by zero"};
    if (integral)
      result->ints[i] = onInts(a.ints[j], b.ints[k]);
    else if (compares)
      result->ints[i] = onFloats(a.number(j), b.number(k)) != 0;
    else
      result->floats[i] = static_cast<float>(onFloats(a.number(j), b.number(k)));
  }
  return *result;
}

Result<HostTensor> unary(const Fold &fold, IntRule onInts, FloatRule onFloats) {
  HostTensor result = fold.in(0);
  for (int64_t &value : result.ints)
    value = onInts(value, 0);
  for (double &value : result.floats)
    value = static_cast<float>(onFloats(value, 0));
  return result;
}

// Sums and products wrap like the 64-bit integers of ONNX, without undefined behaviour.
int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

Folder arithmetic(IntRule onInts, FloatRule onFloats, bool divides = false) {
  return [=](const Fold &fold) { return binary(fold.in(0), fold.in(1), onInts, onFloats, divides, false); };
}
Folder comparison(IntRule onInts, FloatRule onFloats) {
  return [=](const Fold &fold) { return binary(fold.in(0), fold.in(1), onInts, onFloats, false, true); };
}
/// Of one operand or more.
Folder several(IntRule onInts, FloatRule onFloats) {
  return [=](const Fold &fold) {
    Result<HostTensor> result = fold.in(0);
    for (size_t i = 1; result && i < fold.inputs.size(); ++i)
      result = fold.has(i) ? binary(*result, fold.in(i), onInts, onFloats, false, false)
                           : Error{"input " + std::to_string(i) + " is missing"};
    return result;
  };
}
Folder single(IntRule onInts, FloatRule onFloats) {
  return [=](const Fold &fold) { return unary(fold, onInts, onFloats); };
}

int64_t powerOf(int64_t base, int64_t exponent) {
  return toInteger(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
}
int64_t quotient(int64_t a, int64_t b) { return b == -1 ? wrap(0 - static_cast<uint64_t>(a)) : a / b; }
int64_t modulo(int64_t a, int64_t b) {
  int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<HostTensor> where(const Fold &fold) {
  auto first = broadcastShapes(fold.in(1).shape, fold.in(2).shape);
  auto shape = first ? broadcastShapes(fold.in(0).shape, *first) : std::nullopt;
  auto result = shape ? HostTensor::zeros(*shape, fold.in(1).integral) : std::nullopt;
  if (!result)
    return Error{"shapes " + shapeText(fold.in(1).shape) + " and " + shapeText(fold.in(2).shape) + " do not broadcast"};
  for (int64_t i = 0; i < result->size(); ++i) {
    const HostTensor &from = fold.in(fold.in(0).number(broadcastIndex(i, *shape, fold.in(0).shape)) != 0 ? 1 : 2);
    result->set(i, from, broadcastIndex(i, *shape, from.shape));
  }
  return *result;
}

/// Floats that fit no int64 become the least one, as x86 converts them and frameworks therefore do; HostTensor::set()
/// would take the nearest.
Result<HostTensor> cast(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  int64_t to = Attributes(fold.node).integer("to", onnx::TensorProto::FLOAT);
  bool toFloat = isFloatType(to);
  auto result = HostTensor::zeros(x.shape, !toFloat);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (to == onnx::TensorProto::BOOL)
      result->ints[i] = x.number(i) != 0;
    else if (!toFloat && !x.integral && !(std::abs(x.floats[i]) < 9e18)) // as frameworks do: log(0) of positions
      result->ints[i] = std::numeric_limits<int64_t>::min();
    else
      result->set(i, x, i);
  }
  return *result;
}

/// Numbers limited by inputs 1 and 2, or by attributes in early opsets; what is absent limits nothing.
Result<HostTensor> clip(const Fold &fold) {
  HostTensor result = fold.in(0);
  const char *names[] = {"min", "max"};
  for (size_t i : {1, 2}) {
    const bool isInput = fold.has(i), least = i == 1;
    if (isInput && (fold.in(i).size() != 1 || fold.in(i).integral != result.integral))
      return Error{std::string(names[i - 1]) + " must be a single number of the operand's type"};
    if (!isInput && (result.integral || !Attributes(fold.node).has(names[i - 1])))
      continue;
    const double bound = isInput ? fold.in(i).number(0) : Attributes(fold.node).number(names[i - 1], 0);
    for (double &value : result.floats)
      value = least ? std::fmax(value, bound) : std::fmin(value, bound);
    for (int64_t &value : result.ints)
      value = least ? std::max(value, fold.in(i).ints[0]) : std::min(value, fold.in(i).ints[0]);
  }
  return result;
}

double signOf(double number) { return number > 0 ? 1 : number < 0 ? -1 : number; }

#define INTS(expression) [](int64_t a, [[maybe_unused]] int64_t b) -> int64_t { return expression; }
#define FLOATS(expression) [](double a, [[maybe_unused]] double b) -> double { return expression; }

/// Integers wrap around instead of the overflow that C++ leaves undefined. Functions of floats alone leave integers as
/// they are: the type check has refused such nodes.
Folders makeTable() {
  Folders table = {
      {"Add", arithmetic(INTS(wrap(uint64_t(a) + uint64_t(b))), FLOATS(a + b))},
      {"Sub", arithmetic(INTS(wrap(uint64_t(a) - uint64_t(b))), FLOATS(a - b))},
      {"Mul", arithmetic(INTS(wrap(uint64_t(a) * uint64_t(b))), FLOATS(a * b))},
      {"Div", arithmetic(quotient, FLOATS(a / b), true)},
      {"Mod", arithmetic(modulo, FLOATS(std::fmod(a, b)), true)},
      {"Pow", arithmetic(powerOf, FLOATS(std::pow(a, b)))},
      {"Min", several(INTS(a < b ? a : b), FLOATS(std::fmin(a, b)))},
      {"Max", several(INTS(a > b ? a : b), FLOATS(std::fmax(a, b)))},
      {"Equal", comparison(INTS(a == b), FLOATS(a == b))},
      {"Less", comparison(INTS(a < b), FLOATS(a < b))},
      {"LessOrEqual", comparison(INTS(a <= b), FLOATS(a <= b))},
      {"Greater", comparison(INTS(a > b), FLOATS(a > b))},
      {"GreaterOrEqual", comparison(INTS(a >= b), FLOATS(a >= b))},
      {"And", comparison(INTS(a && b), FLOATS(a && b))},
      {"Or", comparison(INTS(a || b), FLOATS(a || b))},
      {"Xor", comparison(INTS(!a != !b), FLOATS(!a != !b))},
      {"Not", single(INTS(!a), FLOATS(a == 0))},
      {"Neg", single(INTS(wrap(0 - uint64_t(a))), FLOATS(-a))},
      {"Abs", single(INTS(a < 0 ? wrap(0 - uint64_t(a)) : a), FLOATS(std::abs(a)))},
      {"Sqrt", single(INTS(a), FLOATS(std::sqrt(a)))},
      {"Reciprocal", single(INTS(a), FLOATS(1 / a))},
      {"Exp", single(INTS(a), FLOATS(std::exp(a)))},
      {"Log", single(INTS(a), FLOATS(std::log(a)))},
      {"Floor", single(INTS(a), FLOATS(std::floor(a)))},
      {"Ceil", single(INTS(a), FLOATS(std::ceil(a)))},
      {"Round", single(INTS(a), FLOATS(std::nearbyint(a)))},
      {"Sign", single(INTS((a > 0) - (a < 0)), FLOATS(signOf(a)))},
      {"Sin", single(INTS(a), FLOATS(std::sin(a)))},
      {"Cos", single(INTS(a), FLOATS(std::cos(a)))},
      {"Tan", single(INTS(a), FLOATS(std::tan(a)))},
      {"Asin", single(INTS(a), FLOATS(std::asin(a)))},
      {"Acos", single(INTS(a), FLOATS(std::acos(a)))},
      {"Atan", single(INTS(a), FLOATS(std::atan(a)))},
      {"Sinh", single(INTS(a), FLOATS(std::sinh(a)))},
      {"Cosh", single(INTS(a), FLOATS(std::cosh(a)))},
      {"Asinh", single(INTS(a), FLOATS(std::asinh(a)))},
      {"Acosh", single(INTS(a), FLOATS(std::acosh(a)))},
      {"Atanh", single(INTS(a), FLOATS(std::atanh(a)))},
      {"Tanh", single(INTS(a), FLOATS(std::tanh(a)))},
      {"Sigmoid", single(INTS(a), FLOATS(1 / (1 + std::exp(-a))))},
      {"Erf", single(INTS(a), FLOATS(std::erf(a)))},
      {"Relu", single(INTS(a > 0 ? a : 0), FLOATS(a < 0 ? 0 : a))},
      {"Identity", single(INTS(a), FLOATS(a))},
      {"Clip", clip},
      {"Where", where},
      {"Cast", cast},
  };
  addMovement(table);
  addIndexing(table);
  addConstantReductions(table);
  return table;
}

const Folders &folders() {
  static const Folders table = makeTable();
  return table;
}

} // namespace

bool isFoldable(const std::string &opType) { return folders().count(opType); }

Result<HostTensor> foldNode(const onnx::NodeProto &node, int64_t opset, const HostInputs &inputs) {
  auto folder = folders().find(node.op_type());
  for (const HostTensor *input : inputs)
    if (input && !HostTensor::fits(input->shape))
      return tooLarge(input->shape);
  Fold fold{node, opset, inputs};
  size_t needed = neededInputs(node.op_type());
  for (size_t i = 0; i < needed; ++i)
    if (!fold.has(i))
      return Error{"input " + std::to_string(i) + " is missing"};
  return folder->second(fold);
}

} // namespace sluice
