// SPDX-License-Identifier: Apache-2.0
// Recurrent cells that have no kernel, a step after the other: activations other than the usual ones, gates that are
// limited or coupled, peepholes. Such layers are rare, and what they compute is what counts.
#include "frontend/RecurrentLayer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice {
namespace {

using Kind = Activation::Kind;

constexpr int64_t opsOfStep = 40; // at most, for the limit

/// What the standard calls a function, which numbers it has, and their defaults.
struct Named {
  const char *name;
  Kind kind;
  bool hasAlpha, hasBeta;
  double alpha, beta;
};
constexpr Named functions[] = {{"affine", Kind::Affine, true, true, 1, 0},
                               {"elu", Kind::Elu, true, false, 1, 0},
                               {"hardsigmoid", Kind::HardSigmoid, true, true, 0.2, 0.5},
                               {"leakyrelu", Kind::LeakyRelu, true, false, 0.01, 0},
                               {"relu", Kind::Relu, false, false, 0, 0},
                               {"scaledtanh", Kind::ScaledTanh, true, true, 1, 1},
                               {"sigmoid", Kind::Sigmoid, false, false, 0, 0},
                               {"softplus", Kind::Softplus, false, false, 0, 0},
                               {"softsign", Kind::Softsign, false, false, 0, 0},
                               {"tanh", Kind::Tanh, false, false, 0, 0},
                               {"thresholdedrelu", Kind::ThresholdedRelu, true, false, 1, 0}};

/// A constant is named by its value: those of one node with one name are one.
Value numberOf(NodeImport &node, double number) { return node.scalar(number, llvm::formatv("{0}", number).str()); }

Value sumWith(NodeImport &node, Value x, double number) {
  return x ? binary<train::AddOp>(node, x, numberOf(node, number)) : x;
}

Value activated(NodeImport &node, Value x, const Activation &how) {
  if (!x)
    return x;
  switch (how.kind) {
  case Kind::Affine:
    return sumWith(node, scaled(node, x, how.alpha), how.beta);
  case Kind::Elu:
    return node.make<train::EluOp>(x, node.f32(how.alpha)).getY();
  case Kind::HardSigmoid:
    return clipped(node, sumWith(node, scaled(node, x, how.alpha), how.beta), 0, 1);
  case Kind::LeakyRelu:
    return node.make<train::LeakyReluOp>(x, node.f32(how.alpha)).getY();
  case Kind::Relu:
    return unary<train::ReluOp>(node, x);
  case Kind::ScaledTanh:
    return scaled(node, unary<train::TanhOp>(node, scaled(node, x, how.beta)), how.alpha);
  case Kind::Sigmoid:
    return unary<train::SigmoidOp>(node, x);
  case Kind::Softplus:
    return unary<train::SoftplusOp>(node, x);
  case Kind::Softsign:
    return binary<train::DivOp>(node, x, sumWith(node, unary<train::AbsOp>(node, x), 1));
  case Kind::Tanh:
    return unary<train::TanhOp>(node, x);
  case Kind::ThresholdedRelu: {
    Value above = compared(node, numberOf(node, how.alpha), x, train::Comparison::Less);
    return selected(node, above, x, numberOf(node, 0));
  }
  }
  return {};
}

/// The steps of one direction.
class Cells {
public:
  Cells(NodeImport &node, const Layer &layer, const Direction &direction, const Parts &parts)
      : node(node), layer(layer), direction(direction), parts(parts), h(parts.before), c(parts.cell) {}

  /// x [B,G*H] is the inputs' part of the gates.
  void step(Value x) { layer.gates == 4 ? lstm(x) : layer.gates == 3 ? gru(x) : rnn(x); }

private:
  Value gate(Value all, int64_t first, int64_t count = 1) {
    return slab(node, all, 1, first * layer.width, count * layer.width);
  }
  /// rows times the weight of `count` gates from `first` on.
  Value product(Value rows, int64_t first, int64_t count) {
    Value weight = slab(node, parts.weight, 0, first * layer.width, count * layer.width);
    if (!rows || !weight)
      return {};
    auto op = node.make<train::MatmulOp>(rows, weight, Value(), false, true, node.f32(1), node.f32(1));
    return op ? op.getY() : Value();
  }
  Value sum(Value a, Value b) { return binary<train::AddOp>(node, a, b); }
  Value times(Value a, Value b) { return binary<train::MulOp>(node, a, b); }
  /// Function f, g or h of the standard, of x within the limit.
  Value apply(Value x, size_t function) {
    if (x && layer.clip > 0)
      x = clipped(node, x, -layer.clip, layer.clip);
    return activated(node, x, direction.activations[function]);
  }
  Value peeped(Value x, Value state, int64_t which) {
    return parts.peepholes ? sum(x, times(state, slab(node, parts.peepholes, 0, which * layer.width, layer.width))) : x;
  }
  Value fromOne(Value x) { return sumWith(node, scaled(node, x, -1), 1); }

  /// The standard's equations; its order of gates is input, output, forget, cell, and peepholes have that of the first
  /// three.
  void lstm(Value x) {
    Value gates = sum(x, product(h, 0, 4));
    if (!gates)
      return void(h = Value());
    Value in = apply(peeped(gate(gates, 0), c, 0), 0);
    Value forget = layer.couples ? fromOne(in) : apply(peeped(gate(gates, 2), c, 2), 0);
    Value added = times(in, apply(gate(gates, 3), 1));
    c = sum(times(forget, c), added);
    Value shown = apply(c, 2);
    h = times(apply(peeped(gate(gates, 1), c, 1), 0), shown);
  }
  /// The standard's equations; its order of gates is update, reset, hidden. The hidden gate's product is reset as a
  /// whole with linear_before_reset, else only the state in it is.
  void gru(Value x) {
    Value state = product(h, 0, 2), early = sum(gate(x, 0, 2), state);
    if (!early)
      return void(h = Value());
    Value update = apply(gate(early, 0), 0), reset = apply(gate(early, 1), 0);
    Value inner =
        layer.linearBeforeReset ? times(reset, sum(product(h, 2, 1), parts.inner)) : product(times(reset, h), 2, 1);
    Value fresh = apply(sum(gate(x, 2), inner), 1);
    Value kept = times(update, h);
    h = sum(times(fromOne(update), fresh), kept);
  }
  void rnn(Value x) { h = apply(sum(x, product(h, 0, 1)), 0); }

  NodeImport &node;
  const Layer &layer;
  const Direction &direction;
  const Parts &parts;

public:
  Value h, c; ///< [B,H], of the latest step
};

} // namespace

SmallVector<Activation> activationsOf(NodeImport &node, ArrayRef<std::string> names) {
  const std::vector<float> alphas = node.attributes.numbers("activation_alpha"),
                           betas = node.attributes.numbers("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  SmallVector<Activation> activations;
  for (const std::string &name : names) {
    const auto *found =
        llvm::find_if(functions, [&](const Named &each) { return StringRef(name).equals_insensitive(each.name); });
    if (found == std::end(functions)) {
      (void)node.error(
          "activation '" + name + "' is none of the standard's: " +
          llvm::join(llvm::map_range(functions, [](const Named &each) { return StringRef(each.name); }), ", "));
      return {};
    }
    Activation activation{found->kind, found->alpha, found->beta};
    if (found->hasAlpha && nextAlpha < alphas.size())
      activation.alpha = alphas[nextAlpha++];
    if (found->hasBeta && nextBeta < betas.size())
      activation.beta = betas[nextBeta++];
    if (found->kind == Kind::Elu && activation.alpha < 0) {
      (void)node.error("alpha of its activation Elu is " + std::to_string(activation.alpha) + ", must not be negative");
      return {};
    }
    activations.push_back(activation);
  }
  return activations;
}

Value stepNumbers(NodeImport &node, const Layer &layer) {
  auto numbers = HostTensor::zeros({layer.steps, 1, 1}, /*integral=*/false);
  if (!numbers) {
    (void)node.error("has " + std::to_string(layer.steps) + " steps, more than can be counted");
    return {};
  }
  for (int64_t i = 0; i < layer.steps; ++i)
    numbers->floats[i] = static_cast<double>(i);
  return node.table(std::move(*numbers), "steps");
}

Value insideOf(NodeImport &node, const Layer &layer) {
  return compared(node, stepNumbers(node, layer), layer.lengths, train::Comparison::Less);
}

/// Behind the end of a sequence outputs are 0 and the states stay, so that the last one is that of its last step; a
/// reversed direction keeps the state before it until the sequence begins.
Output unrolledOf(NodeImport &node, const Layer &layer, const Direction &direction, const Parts &parts) {
  const int64_t most = node.spec().limits.inlinedNodes;
  if (layer.steps > most / opsOfStep) {
    (void)node.error("has a cell that no kernel has, so that its " + std::to_string(layer.steps) + " steps become " +
                     overLimit("up to " + std::to_string(layer.steps) + " times " + std::to_string(opsOfStep) + " ops",
                               most, "inlined-nodes"));
    return {};
  }
  Value inside = layer.lengths ? insideOf(node, layer) : Value(), zero = inside ? numberOf(node, 0) : Value();
  if (layer.lengths && !zero)
    return {};
  Cells cells(node, layer, direction, parts);
  SmallVector<Value> hidden(layer.steps);
  for (int64_t i = 0; i < layer.steps; ++i) {
    const int64_t t = direction.reverse ? layer.steps - 1 - i : i;
    const Value before = cells.h, cellBefore = cells.c;
    cells.step(node.reshape(slab(node, parts.gates, 0, t, 1), {layer.batch, layer.columns()}));
    Value shown = cells.h;
    if (inside && cells.h) {
      Value here = node.reshape(slab(node, inside, 0, t, 1), {layer.batch, 1});
      shown = selected(node, here, cells.h, zero);
      cells.h = selected(node, here, cells.h, before);
      cells.c = selected(node, here, cells.c, cellBefore);
    }
    if (!cells.h || !shown)
      return {};
    hidden[t] = node.reshape(shown, {1, layer.batch, layer.width});
  }
  auto last = [&](Value state) { return state ? node.reshape(state, {1, layer.batch, layer.width}) : state; };
  return {joined(node, hidden, 0), node.used(1) ? last(cells.h) : Value(), node.used(2) ? last(cells.c) : Value()};
}

} // namespace sluice
