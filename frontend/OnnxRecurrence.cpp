// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, RNN. The inputs' part of the gates is one product over all steps, with the biases; what is left for each
// step is train.recurrence, one for each direction, or where that lacks the cell, UnrolledCells.cpp. Only the results
// that something reads are put together.
#include "frontend/RecurrentLayer.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice {
namespace {

using train::Cell;

/// The kernels' cell with these activations; nothing where they have none.
std::optional<Cell> cellOf(NodeImport &node, ArrayRef<Activation> activations) {
  using Kind = Activation::Kind;
  const std::string &op = node.proto().op_type();
  if (op == "RNN" && activations[0].kind == Kind::Relu)
    return Cell::RnnRelu;
  const ArrayRef<Activation> states = op == "RNN" ? activations : activations.drop_front();
  if ((op != "RNN" && activations[0].kind != Kind::Sigmoid) ||
      llvm::any_of(states, [](const Activation &each) { return each.kind != Kind::Tanh; }))
    return std::nullopt;
  if (op == "RNN")
    return Cell::RnnTanh;
  if (op == "LSTM")
    return Cell::Lstm;
  return node.attributes.integer("linear_before_reset", 0) ? Cell::GruLinearBeforeReset : Cell::Gru;
}

/// The directions of the node with their activations; none after an error.
SmallVector<Direction> directionsOf(NodeImport &node) {
  const std::string way = node.attributes.text("direction", "forward"), &op = node.proto().op_type();
  const size_t perDirection = op == "RNN" ? 1 : op == "GRU" ? 2 : 3;
  if (way != "forward" && way != "reverse" && way != "bidirectional") {
    (void)node.error("direction '" + way + "' must be forward, reverse or bidirectional");
    return {};
  }
  const size_t count = way == "bidirectional" ? 2 : 1;
  std::vector<std::string> names = node.attributes.texts("activations");
  if (names.empty())
    for (size_t i = 0; i < count * perDirection; ++i)
      names.push_back(op != "RNN" && i % perDirection == 0 ? "Sigmoid" : "Tanh");
  if (names.size() != count * perDirection) {
    (void)node.error("has " + std::to_string(names.size()) + " activations, needs " +
                     std::to_string(count * perDirection));
    return {};
  }
  SmallVector<Activation> all = activationsOf(node, names);
  SmallVector<Direction> directions;
  for (size_t i = 0; i < count && !all.empty(); ++i) {
    const ArrayRef<Activation> own = ArrayRef(all).slice(i * perDirection, perDirection);
    directions.push_back({cellOf(node, own), SmallVector<Activation, 3>(own), way == "reverse" || i == 1});
  }
  return directions;
}

/// What no kernel has: limits of the gates, coupled gates, peepholes.
LogicalResult readForm(NodeImport &node, Layer &layer) {
  const bool lstm = node.proto().op_type() == "LSTM";
  layer.clip = node.attributes.number("clip", 0);
  layer.couples = lstm && node.attributes.integer("input_forget", 0) != 0;
  layer.linearBeforeReset = node.attributes.integer("linear_before_reset", 0) != 0;
  if (!(layer.clip >= 0))
    return node.error("limits the gates to clip " + llvm::formatv("{0}", layer.clip).str() +
                      ", which must not be negative");
  if (const int64_t layout = node.attributes.integer("layout", 0); layout != 0 && layout != 1)
    return node.error("layout is " + std::to_string(layout) + ", must be 0 or 1");
  if (layer.clip != 0 || layer.couples || (lstm && node.has(7)))
    for (Direction &direction : layer.directions)
      direction.cell = std::nullopt;
  return success();
}

LogicalResult readPeepholes(NodeImport &node, Layer &layer) {
  if (node.proto().op_type() != "LSTM" || !node.has(7))
    return success();
  layer.peepholes = node.tensor(7, {Use::Bias});
  const std::vector<int64_t> wanted{layer.count(), 3 * layer.width};
  if (layer.peepholes && shapeOf(layer.peepholes) != ArrayRef(wanted))
    return node.error("peepholes of shape " + shapeText(shapeOf(layer.peepholes).vec()) + " do not fit, needs " +
                      shapeText(wanted));
  return success(bool(layer.peepholes));
}

/// Weights are [D,G*H,in]: inputs last.
Use useOf(int input) {
  Use use;
  use.kind = input < 3 ? Use::Weight : Use::Bias;
  use.inputsLast = input < 3;
  return use;
}

/// The node's inputs and weights, and the extents that they give.
LogicalResult readWeights(NodeImport &node, Layer &layer) {
  Value x = node.tensor(0);
  layer.weight = node.tensor(1, useOf(1)), layer.recurrent = node.tensor(2, useOf(2));
  if (!x || !layer.weight || !layer.recurrent)
    return failure();
  const std::string &op = node.proto().op_type();
  layer.gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  ArrayRef<int64_t> shape = shapeOf(x), own = shapeOf(layer.weight), steps = shapeOf(layer.recurrent);
  layer.width = steps.size() == 3 ? steps[2] : 0;
  const bool fits = shape.size() == 3 && typeOf(x).getNumElements() > 0 && layer.width > 0 &&
                    steps == ArrayRef<int64_t>{layer.count(), layer.columns(), layer.width} &&
                    own == ArrayRef<int64_t>{layer.count(), layer.columns(), shape[2]};
  if (!fits)
    return node.error("input " + shapeText(shape.vec()) + ", weight " + shapeText(own.vec()) +
                      " and recurrent weight " + shapeText(steps.vec()) + " do not fit " +
                      std::to_string(layer.count()) + " direction(s) of " + std::to_string(layer.gates) + " gate(s)");
  if (const int64_t hidden = node.attributes.integer("hidden_size", layer.width); hidden != layer.width)
    return node.error("hidden_size is " + std::to_string(hidden) + ", the recurrent weight has " +
                      std::to_string(layer.width) + " units");
  layer.batchFirst = node.attributes.integer("layout", 0) == 1;
  layer.steps = shape[layer.batchFirst ? 1 : 0], layer.batch = shape[layer.batchFirst ? 0 : 1];
  layer.inputs = shape[2];
  layer.rows =
      node.reshape(layer.batchFirst ? permuted(node, x, {1, 0, 2}) : x, {layer.steps * layer.batch, layer.inputs});
  return success(bool(layer.rows));
}

LogicalResult readBias(NodeImport &node, Layer &layer) {
  layer.bias = node.has(3) ? node.tensor(3, useOf(3)) : Value();
  if (layer.bias && shapeOf(layer.bias) != ArrayRef<int64_t>{layer.count(), 2 * layer.columns()})
    return node.error("bias of shape " + shapeText(shapeOf(layer.bias).vec()) + " does not fit, needs " +
                      shapeText({layer.count(), 2 * layer.columns()}));
  const Source *source = node.has(3) ? node.source(3) : nullptr;
  layer.halfBias = source && node.graph().roles.halfBiases.count(source->name);
  return success(layer.bias || !node.has(3));
}

/// The states before the first step, inputs 5 and 6, as [D,B,H].
LogicalResult readStates(NodeImport &node, const Layer &layer, int input, Value &states) {
  if (!node.has(input))
    return success();
  const std::vector<int64_t> wanted{layer.count(), layer.batch, layer.width};
  states = node.tensor(input);
  if (states && layer.batchFirst && typeOf(states).getRank() == 3)
    states = permuted(node, states, {1, 0, 2});
  if (states && shapeOf(states) != ArrayRef(wanted))
    return node.error("initial states of shape " + shapeText(shapeOf(states).vec()) + " do not fit, needs " +
                      shapeText(wanted));
  return success(bool(states));
}

/// One direction's part of a tensor that has them in front, as `shape`.
Value partOf(NodeImport &node, Value all, int64_t direction, ArrayRef<int64_t> shape) {
  return node.reshape(slab(node, all, 0, direction, 1), shape);
}

Value stateOf(NodeImport &node, const Layer &layer, Value all, int64_t direction) {
  if (all)
    return partOf(node, all, direction, {layer.batch, layer.width});
  return node.filled({layer.batch, layer.width}, 0, "initial");
}

/// What is added once for all steps, null where nothing is, and what a cell that resets after the product adds to it.
std::pair<Value, Value> biasesOf(NodeImport &node, const Layer &layer, int64_t direction) {
  const bool resets = layer.gates == 3 && layer.linearBeforeReset;
  const int64_t width = layer.width, columns = layer.columns();
  if (!layer.bias)
    return {Value(), resets ? node.filled({width}, 0, "bias") : Value()};
  Value both = partOf(node, layer.bias, direction, {2 * columns});
  if (layer.halfBias)
    return {slab(node, both, 0, 0, columns), Value()};
  auto sum = [&](int64_t count) {
    Value second = slab(node, both, 0, columns, count);
    return binary<train::AddOp>(node, slab(node, both, 0, 0, count), second);
  };
  if (!resets)
    return {sum(columns), Value()};
  return {joined(node, {sum(2 * width), slab(node, both, 0, 2 * width, width)}, 0),
          slab(node, both, 0, columns + 2 * width, width)};
}

/// The gates [1,1,G*H] with which a step keeps c of an LSTM, or h of a GRU, exactly. An RNN has none.
Value keepingGates(NodeImport &node, const Layer &layer, Cell cell) {
  constexpr double always = 1e30; // the logistic function of it is 1, of its negative 0
  auto gates = HostTensor::zeros({1, 1, layer.columns()}, /*integral=*/false);
  for (int64_t i = 0; i < layer.width; ++i) {
    if (cell == Cell::Lstm)
      gates->floats[i] = -always, gates->floats[2 * layer.width + i] = always;
    else if (layer.gates > 1)
      gates->floats[i] = always;
  }
  return node.table(std::move(*gates), "keep");
}

/// The hidden state of each sequence's last step [1,B,H], `before` that of one without steps.
Value lastOf(NodeImport &node, const Layer &layer, Value hidden, Value before) {
  Value zero = node.scalar(0, "zero"), one = node.scalar(1, "one");
  Value next = binary<train::AddOp>(node, stepNumbers(node, layer), one);
  Value isLast = compared(node, next, layer.lengths, train::Comparison::Equal);
  Value last = summed(node, selected(node, isLast, hidden, zero), {1, layer.batch, layer.width});
  Value none = compared(node, layer.lengths, zero, train::Comparison::LessOrEqual);
  return selected(node, none, node.reshape(before, {1, layer.batch, layer.width}), last);
}

/// By train.recurrence. Sequences that end early keep their state after their end; those that run backwards, which
/// would begin there, are turned around instead.
Output recurrenceOf(NodeImport &node, const Layer &layer, const Direction &direction, const Parts &parts) {
  const bool lstm = direction.cell == Cell::Lstm, turns = layer.lengths && direction.reverse;
  const bool reverse = direction.reverse && !turns;
  Value gates = parts.gates;
  if (layer.lengths) {
    Value keeping = keepingGates(node, layer, *direction.cell);
    gates = selected(node, insideOf(node, layer), gates, keeping);
  }
  const unsigned results = lstm ? 3 : layer.gates == 1 ? 1 : 2;
  auto op = gates ? node.makeWith<train::RecurrenceOp>(results, gates, parts.weight, parts.before,
                                                       lstm ? parts.cell : parts.inner, *direction.cell, reverse)
                  : train::RecurrenceOp();
  if (!op)
    return {};
  Output output{op.getHidden(), Value(),
                node.used(2) && lstm ? node.reshape(op.getResult(2), {1, layer.batch, layer.width}) : Value()};
  if (node.used(1))
    output.last = layer.lengths ? lastOf(node, layer, output.hidden, parts.before)
                                : slab(node, output.hidden, 0, reverse ? 0 : layer.steps - 1, 1);
  if (layer.lengths && node.used(0)) {
    Value zero = node.scalar(0, "zero");
    output.hidden = selected(node, insideOf(node, layer), output.hidden, zero);
    if (turns && output.hidden) {
      const int64_t rows = layer.steps * layer.batch;
      output.hidden = node.reshape(turned(node, layer, node.reshape(output.hidden, {rows, layer.width})),
                                   {layer.steps, layer.batch, layer.width});
    }
  }
  return output;
}

/// Null values after an error.
Output outputOf(NodeImport &node, const Layer &layer, int64_t index) {
  const Direction &direction = layer.directions[index];
  const bool turns = layer.lengths && direction.reverse && direction.cell;
  auto [bias, inner] = biasesOf(node, layer, index);
  Value own = partOf(node, layer.weight, index, {layer.columns(), layer.inputs});
  Parts parts;
  parts.weight = partOf(node, layer.recurrent, index, {layer.columns(), layer.width});
  parts.before = stateOf(node, layer, layer.hidden, index);
  parts.cell = layer.gates == 4 ? stateOf(node, layer, layer.cells, index) : Value();
  parts.inner = inner;
  parts.peepholes = layer.peepholes ? partOf(node, layer.peepholes, index, {3 * layer.width}) : Value();
  Value rows = turns ? turned(node, layer, layer.rows) : layer.rows;
  if (!own || !parts.weight || !parts.before || !rows || !node.shared().error.empty())
    return {};
  auto product = node.make<train::MatmulOp>(rows, own, bias, false, true, node.f32(1), node.f32(1));
  parts.gates = product ? node.reshape(product, {layer.steps, layer.batch, layer.columns()}) : Value();
  if (!parts.gates)
    return {};
  return direction.cell ? recurrenceOf(node, layer, direction, parts) : unrolledOf(node, layer, direction, parts);
}

/// Results of all directions side by side: Y [T,D,B,H] and the last states [D,B,H], the batch in front with layout 1.
LogicalResult putTogether(NodeImport &node, const Layer &layer, ArrayRef<Output> outputs) {
  SmallVector<Value> sequences, last, cells;
  for (const Output &output : outputs) {
    sequences.push_back(node.used(0) ? node.reshape(output.hidden, {layer.steps, 1, layer.batch, layer.width})
                                     : Value());
    last.push_back(output.last);
    cells.push_back(output.cell);
  }
  auto give = [&](ArrayRef<Value> parts, int64_t axis, int output) {
    if (!node.used(output))
      return success();
    Value all = joined(node, parts, axis);
    if (layer.batchFirst)
      all = permuted(node, all, output ? ArrayRef<int64_t>{1, 0, 2} : ArrayRef<int64_t>{2, 0, 1, 3});
    return node.result(all, output);
  };
  return success(succeeded(give(sequences, 1, 0)) && succeeded(give(last, 0, 1)) &&
                 (node.proto().op_type() != "LSTM" || succeeded(give(cells, 0, 2))));
}

/// LSTM, GRU and RNN have one list of inputs, of which each reads its own. The form comes first, as shapes are compared
/// with it.
LogicalResult importRecurrence(NodeImport &node) {
  Layer layer;
  layer.directions = directionsOf(node);
  if (layer.directions.empty() || failed(readForm(node, layer)) || failed(readWeights(node, layer)) ||
      failed(readLengths(node, 4, layer)) || failed(readBias(node, layer)) || failed(readPeepholes(node, layer)) ||
      failed(readStates(node, layer, 5, layer.hidden)))
    return failure();
  if (node.proto().op_type() == "LSTM" && failed(readStates(node, layer, 6, layer.cells)))
    return failure();
  SmallVector<Output> outputs;
  for (int64_t i = 0; i < layer.count(); ++i) {
    outputs.push_back(outputOf(node, layer, i));
    if (!outputs.back().hidden)
      return failure();
  }
  return putTogether(node, layer, outputs);
}

} // namespace

void addRecurrences(NodeImporters &table) {
  table["LSTM"] = importRecurrence;
  table["GRU"] = importRecurrence;
  table["RNN"] = importRecurrence;
}

} // namespace sluice
