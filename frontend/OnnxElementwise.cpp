// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: activations, arithmetic with numpy's broadcasting, and activations that are short compositions of
// these.
#include "frontend/NodeImport.h"
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

/// An operand that spans several dimensions of an image as an image itself: layouts are those of rank 4.
Value asImageOperand(NodeImport &node, Value x, int64_t rank) {
  auto shape = shapeOf(x);
  int64_t own = shape.size();
  if (rank != 4 || own == rank || llvm::count_if(shape, [](int64_t extent) { return extent != 1; }) < 2)
    return x;
  SmallVector<int64_t> image(rank - own, 1);
  image.append(shape.begin(), shape.end());
  return node.reshape(x, image);
}

template <typename Op> Op makeBinary(NodeImport &node, Value a, Value b) {
  if (!a || !b)
    return {};
  int64_t rank = std::max(typeOf(a).getRank(), typeOf(b).getRank());
  return node.make<Op>(asImageOperand(node, a, rank), asImageOperand(node, b, rank));
}

template <typename Op, Use::Kind kind> LogicalResult importBinary(NodeImport &node) {
  auto op = makeBinary<Op>(node, operand(node, 0, kind), operand(node, 1, kind));
  return op ? node.result(op) : failure();
}

Value scaled(NodeImport &node, Value x, double factor) {
  auto op = x ? node.make<train::ScaleOp>(x, node.f32(factor)) : train::ScaleOp();
  return op ? op.getY() : Value();
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

Value sumOf(NodeImport &node) {
  Value sum = node.tensor(0);
  for (int i = 1; sum && i < node.inputs(); ++i) {
    auto op = makeBinary<train::AddOp>(node, sum, node.tensor(i));
    sum = op ? op.getY() : Value();
  }
  return sum;
}

LogicalResult importSum(NodeImport &node) { return node.result(sumOf(node)); }

Value clipped(NodeImport &node, Value x, double low, double high) {
  auto op = x ? node.make<train::ClipOp>(x, node.f32(low), node.f32(high)) : train::ClipOp();
  return op ? op.getY() : Value();
}

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

/// Small whole powers are products.
LogicalResult importPow(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *exponent = node.constant(1, "the exponent");
  if (!x || !exponent)
    return failure();
  double power = exponent->size() == 1 ? exponent->number(0) : 0;
  if (power != 1 && power != 2 && power != 3)
    return node.error("only the powers 1, 2 and 3 are supported, not " + std::to_string(power));
  Value y = x;
  for (int i = 1; y && i < power; ++i) {
    auto op = node.make<train::MulOp>(y, x);
    y = op ? op.getY() : Value();
  }
  return node.result(y);
}

/// Conversions between float types keep float32; others have been folded or cannot be trained through.
LogicalResult importCast(NodeImport &node) {
  int64_t to = node.attributes.integer("to", 0);
  if (to != onnx::TensorProto::FLOAT)
    return node.error("casts to anything but float32 are not supported on activations");
  return node.result(node.tensor(0));
}

/// Bodies of composite ops cast their constants to the type of their input, which is float32 here.
LogicalResult importCastLike(NodeImport &node) {
  const HostTensor *value = node.folded(0);
  if (!value)
    return node.result(node.tensor(0));
  if (value->integral)
    return node.error("casts of integers like a tensor are not supported");
  return node.fold(*value);
}

LogicalResult importIdentity(NodeImport &node) { return node.result(node.tensor(0)); }

} // namespace

void addElementwise(NodeImporters &table) {
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
  table["Div"] = importBinary<train::DivOp, Use::Factor>;
  table["Sum"] = importSum;
  table["Mean"] = importMean;
  table["Neg"] = importNeg;
  table["Pow"] = importPow;
  table["Cast"] = importCast;
  table["CastLike"] = importCastLike;
  table["Identity"] = importIdentity;
}

} // namespace sluice
