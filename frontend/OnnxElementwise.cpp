// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: activations, arithmetic with numpy's broadcasting, and activations that are short compositions of
// these.
#include "frontend/Compositions.h"
#include "frontend/OnnxFile.h"
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

template <typename Op> LogicalResult importUnary(NodeImport &node) {
  Value x = node.tensor(0);
  auto op = x ? node.make<Op>(x) : Op();
  return op ? node.result(op) : failure();
}

/// An operand of arithmetic; factors start at one and summands at zero when --init draws new values.
Value operand(NodeImport &node, int input, Use::Kind kind) {
  Use use;
  use.kind = kind;
  return node.tensor(input, use);
}

template <typename Op, Use::Kind kind> LogicalResult importBinary(NodeImport &node) {
  Value a = operand(node, 0, kind), b = operand(node, 1, kind);
  return node.result(binary<Op>(node, a, b));
}

/// A factor that folding knows, a single number: train.scale needs no tensor for it.
LogicalResult importMul(NodeImport &node) {
  for (int i = 0; i < 2; ++i) {
    const HostTensor *factor = node.folded(i);
    bool activation = node.has(1 - i) && node.shared().values.count(node.proto().input(1 - i));
    if (factor && !factor->integral && factor->size() == 1 && activation) {
      Value x = node.tensor(1 - i);
      if (x && factor->shape.size() <= shapeOf(x).size())
        return node.result(scaled(node, x, factor->floats[0]));
    }
  }
  return importBinary<train::MulOp, Use::Factor>(node);
}

/// Quotients of integers lose their fraction; those of whole numbers that float32 holds are never rounded up to one.
LogicalResult importDiv(NodeImport &node) {
  if (!node.isIntegral(0) || !node.isIntegral(1))
    return importBinary<train::DivOp, Use::Factor>(node);
  Value divisor = node.tensor(1), quotient = binary<train::DivOp>(node, node.tensor(0), divisor);
  return node.result(rounded(node, quotient, train::Rounding::TowardZero));
}

/// The remainder has the sign of the dividend with fmod=1, else, of integers alone, that of the divisor.
LogicalResult importMod(NodeImport &node) {
  const bool fmod = node.attributes.integer("fmod", 0) != 0;
  if (!fmod && !node.isIntegral(0))
    return node.error("takes the remainder of float32 values with fmod=0; ONNX asks for fmod=1");
  Value a = operand(node, 0, Use::Operand), b = operand(node, 1, Use::Operand);
  Value rest = binary<train::RemainderOp>(node, a, b), zero = rest ? node.scalar(0, "zero") : Value();
  if (fmod || !zero)
    return node.result(rest);
  Value apart = compared(node, binary<train::MulOp>(node, rest, b), zero, train::Comparison::Less);
  return node.result(selected(node, apart, binary<train::AddOp>(node, rest, b), rest));
}

template <train::Trigonometry function> LogicalResult importTrigonometric(NodeImport &node) {
  Value x = node.tensor(0);
  auto op = x ? node.make<train::TrigonometricOp>(x, function) : train::TrigonometricOp();
  return op ? node.result(op) : failure();
}

template <train::Rounding rounding> LogicalResult importRound(NodeImport &node) {
  return node.result(rounded(node, node.tensor(0), rounding));
}

Value sumOf(NodeImport &node) {
  Value sum = node.tensor(0);
  for (int i = 1; sum && i < node.inputs(); ++i)
    sum = binary<train::AddOp>(node, sum, node.tensor(i));
  return sum;
}

LogicalResult importSum(NodeImport &node) { return node.result(sumOf(node)); }

/// Bounds are attributes before opset 11 and inputs since.
LogicalResult importClip(NodeImport &node) {
  constexpr float largest = std::numeric_limits<float>::max();
  double bounds[2] = {node.attributes.number("min", -largest), node.attributes.number("max", largest)};
  for (int i = 0; i < 2; ++i) {
    if (!node.has(1 + i))
      continue;
    const HostTensor *bound = node.constant(1 + i, i == 0 ? "min" : "max");
    if (!bound || bound->size() != 1)
      return node.error("bounds must be single numbers");
    bounds[i] = bound->number(0);
  }
  for (int i = 0; i < 2; ++i)
    if (std::isnan(bounds[i]))
      return node.error(std::string("bound '") + (i == 0 ? "min" : "max") + "' is NaN; it must be a number");
  return node.result(clipped(node, node.tensor(0), bounds[0], bounds[1]));
}

LogicalResult importLeakyRelu(NodeImport &node) {
  Value x = node.tensor(0);
  auto op =
      x ? node.make<train::LeakyReluOp>(x, node.f32(node.attributes.number("alpha", 0.01f))) : train::LeakyReluOp();
  return op ? node.result(op) : failure();
}

Value elu(NodeImport &node, Value x, double alpha) {
  if (alpha < 0) {
    (void)node.error("alpha is " + std::to_string(alpha) + ", must not be negative");
    return {};
  }
  auto op = x ? node.make<train::EluOp>(x, node.f32(alpha)) : train::EluOp();
  return op ? op.getY() : Value();
}

LogicalResult importElu(NodeImport &node) {
  return node.result(elu(node, node.tensor(0), node.attributes.number("alpha", 1)));
}

LogicalResult importSelu(NodeImport &node) {
  Value y = elu(node, node.tensor(0), node.attributes.number("alpha", 1.67326319217681884765625f));
  return node.result(scaled(node, y, node.attributes.number("gamma", 1.05070102214813232421875f)));
}

/// alpha * elu(x / alpha)
LogicalResult importCelu(NodeImport &node) {
  const double alpha = node.attributes.number("alpha", 1);
  if (!(alpha > 0))
    return node.error("alpha is " + std::to_string(alpha) + ", must be positive");
  return node.result(scaled(node, elu(node, scaled(node, node.tensor(0), 1 / alpha), 1), alpha));
}

/// x / (1 + |x|)
LogicalResult importSoftsign(NodeImport &node) {
  Value x = node.tensor(0), one = x ? node.scalar(1, "one") : Value();
  auto size = one ? node.make<train::AbsOp>(x) : train::AbsOp();
  auto sum = size ? node.make<train::AddOp>(size, one) : train::AddOp();
  auto op = sum ? node.make<train::DivOp>(x, sum) : train::DivOp();
  return op ? node.result(op) : failure();
}

/// x * tanh(softplus(x))
LogicalResult importMish(NodeImport &node) {
  Value x = node.tensor(0);
  auto plus = x ? node.make<train::SoftplusOp>(x) : train::SoftplusOp();
  auto gate = plus ? node.make<train::TanhOp>(plus) : train::TanhOp();
  auto op = gate ? node.make<train::MulOp>(x, gate) : train::MulOp();
  return op ? node.result(op) : failure();
}

LogicalResult importMean(NodeImport &node) {
  Value sum = sumOf(node);
  return node.result(scaled(node, sum, 1.0 / node.inputs()));
}

LogicalResult importGelu(NodeImport &node) {
  Value x = node.tensor(0);
  const std::string form = node.attributes.text("approximate", "none");
  if (form != "none" && form != "tanh")
    return node.error("approximate is '" + form + "', must be none or tanh");
  auto op = x ? node.make<train::GeluOp>(x, form == "tanh") : train::GeluOp();
  return op ? node.result(op) : failure();
}

LogicalResult importNeg(NodeImport &node) { return node.result(scaled(node, node.tensor(0), -1)); }

/// alpha * x + beta, limited to [0, 1].
Value hardSigmoid(NodeImport &node, Value x, double alpha, double beta) {
  Value product = scaled(node, x, alpha), shift = product ? node.scalar(beta, "shift") : Value();
  auto sum = shift ? node.make<train::AddOp>(product, shift) : train::AddOp();
  return sum ? clipped(node, sum, 0, 1) : Value();
}

LogicalResult importHardSigmoid(NodeImport &node) {
  double alpha = node.attributes.number("alpha", 0.2f), beta = node.attributes.number("beta", 0.5f);
  return node.result(hardSigmoid(node, node.tensor(0), alpha, beta));
}

LogicalResult importHardSwish(NodeImport &node) {
  Value x = node.tensor(0), gate = x ? hardSigmoid(node, x, 1.0 / 6, 0.5) : Value();
  auto op = gate ? node.make<train::MulOp>(x, gate) : train::MulOp();
  return op ? node.result(op) : failure();
}

/// Exponents that are data, or parameters, by the logarithm of the base, which must be positive.
LogicalResult importPow(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *exponent = node.known(1);
  if (!x)
    return failure();
  if (exponent && exponent->size() == 1 && exponent->shape.size() <= shapeOf(x).size())
    return node.result(power(node, x, exponent->number(0)));
  Value exponents = node.tensor(1), product = binary<train::MulOp>(node, unary<train::LogOp>(node, x), exponents);
  return node.result(unary<train::ExpOp>(node, product));
}

/// x above 0, else slope * x, whose gradient 0 takes, as in PyTorch: layers that begin at 0 are to learn.
LogicalResult importPRelu(NodeImport &node) {
  Value x = node.tensor(0), slope = node.tensor(1, {Use::Scale});
  Value above = compared(node, node.scalar(0, "zero"), x, train::Comparison::Less);
  Value y = selected(node, above, x, binary<train::MulOp>(node, slope, x));
  if (y && shapeOf(y) != shapeOf(x))
    return node.error("has a slope of shape " + shapeText(shapeOf(slope).vec()) + ", which does not broadcast to " +
                      shapeText(shapeOf(x).vec()));
  return node.result(y);
}

/// Of equal ones each takes half of the gradient, as in PyTorch and JAX; in TensorFlow the first takes all of it.
Value larger(NodeImport &node, Value a, Value b) {
  Value y = selected(node, compared(node, b, a, train::Comparison::LessOrEqual), a, b);
  if (node.shared().file.exporter() == Exporter::TensorFlow)
    return y;
  Value other = selected(node, compared(node, b, a, train::Comparison::Less), a, b);
  Value half = scaled(node, other, 0.5);
  return binary<train::AddOp>(node, scaled(node, y, 0.5), half);
}

/// Max and Min, which is -max(-x). A constant number is a bound.
template <bool least> LogicalResult importExtremum(NodeImport &node) {
  constexpr double sign = least ? -1 : 1, largest = std::numeric_limits<float>::max();
  Value y;
  std::optional<double> bound;
  for (int i = 0; i < node.inputs(); ++i) {
    const HostTensor *number = node.folded(i);
    if (number && number->size() == 1 && number->shape.empty() && node.inputs() > 1 && !std::isnan(number->number(0))) {
      bound = std::max(bound.value_or(-largest), sign * number->number(0));
      continue;
    }
    Value x = node.tensor(i);
    x = least ? scaled(node, x, -1) : x;
    y = i == 0 || !y ? x : larger(node, y, x);
    if (!y)
      return failure();
  }
  if (!y)
    return node.error("has nothing but constants as operands");
  y = bound ? clipped(node, y, *bound, largest) : y;
  return node.result(least ? scaled(node, y, -1) : y);
}

/// Bodies of composite ops cast their constants to the type of their input: float32, or integers where that has some.
LogicalResult importCastLike(NodeImport &node) {
  const bool integral = node.isIntegral(1);
  const HostTensor *value = node.folded(0);
  if (!value && integral && !node.isIntegral(0))
    return node.result(rounded(node, node.tensor(0), train::Rounding::TowardZero));
  if (!value)
    return node.result(integral ? node.moved(0) : node.tensor(0));
  auto cast = HostTensor::zeros(value->shape, integral);
  for (int64_t i = 0; i < cast->size(); ++i)
    cast->set(i, *value, i);
  return node.fold(std::move(*cast));
}

/// The rest of DoRA's lengths, which is fixed in each step, is said by name: ONNX has no op that stops gradients.
LogicalResult importIdentity(NodeImport &node) {
  Value x = node.moved(0);
  if (x && node.spec().detached.count(node.proto().output(0)))
    return node.result(node.make<train::DetachOp>(x));
  return node.result(x);
}

} // namespace

void addElementwise(NodeImporters &table) {
  using train::Rounding;
  using train::Trigonometry;
  table["Sin"] = importTrigonometric<Trigonometry::Sin>;
  table["Cos"] = importTrigonometric<Trigonometry::Cos>;
  table["Tan"] = importTrigonometric<Trigonometry::Tan>;
  table["Asin"] = importTrigonometric<Trigonometry::Asin>;
  table["Acos"] = importTrigonometric<Trigonometry::Acos>;
  table["Atan"] = importTrigonometric<Trigonometry::Atan>;
  table["Sinh"] = importTrigonometric<Trigonometry::Sinh>;
  table["Cosh"] = importTrigonometric<Trigonometry::Cosh>;
  table["Asinh"] = importTrigonometric<Trigonometry::Asinh>;
  table["Acosh"] = importTrigonometric<Trigonometry::Acosh>;
  table["Atanh"] = importTrigonometric<Trigonometry::Atanh>;
  table["Floor"] = importRound<Rounding::Down>;
  table["Ceil"] = importRound<Rounding::Up>;
  table["Round"] = importRound<Rounding::NearestEven>;
  table["Mod"] = importMod;
  table["Relu"] = importUnary<train::ReluOp>;
  table["Sigmoid"] = importUnary<train::SigmoidOp>;
  table["Tanh"] = importUnary<train::TanhOp>;
  table["Erf"] = importUnary<train::ErfOp>;
  table["Gelu"] = importGelu;
  table["Exp"] = importUnary<train::ExpOp>;
  table["Log"] = importUnary<train::LogOp>;
  table["Sqrt"] = importUnary<train::SqrtOp>;
  table["Reciprocal"] = importUnary<train::ReciprocalOp>;
  table["Abs"] = importUnary<train::AbsOp>;
  table["Softplus"] = importUnary<train::SoftplusOp>;
  table["Elu"] = importElu;
  table["Selu"] = importSelu;
  table["Celu"] = importCelu;
  table["Softsign"] = importSoftsign;
  table["Mish"] = importMish;
  table["LeakyRelu"] = importLeakyRelu;
  table["Clip"] = importClip;
  table["HardSigmoid"] = importHardSigmoid;
  table["HardSwish"] = importHardSwish;
  table["Add"] = importBinary<train::AddOp, Use::Operand>;
  table["Sub"] = importBinary<train::SubOp, Use::Operand>;
  table["Mul"] = importMul;
  table["Div"] = importDiv;
  table["Sum"] = importSum;
  table["Mean"] = importMean;
  table["Neg"] = importNeg;
  table["Pow"] = importPow;
  table["PRelu"] = importPRelu;
  table["Max"] = importExtremum<false>;
  table["Min"] = importExtremum<true>;
  table["CastLike"] = importCastLike;
  table["Identity"] = importIdentity;
}

} // namespace sluice
