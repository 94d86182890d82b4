// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, RNN. The inputs' part of the gates is one product over all steps, with the biases; what is left for each
// step is train.recurrence, one for each direction. Only the results that something reads are put together.
#include "frontend/Compositions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice {
namespace {

using train::Cell;

struct Direction {
  Cell cell;
  bool reverse;
};

/// The node's directions and extents, and its tensors: the inputs of all steps as rows [T*B,I], what has the directions
/// in front. Null where the node has none.
struct Layer {
  SmallVector<Direction> directions;
  bool batchFirst = false;
  int64_t gates = 0, steps = 0, batch = 0, inputs = 0, width = 0;
  Value rows, weight, recurrent, bias, hidden, cells;

  int64_t count() const { return directions.size(); }
  int64_t columns() const { return gates * width; }
};

/// The cell of a direction whose activations, in lower case, are these; nothing for others.
std::optional<Cell> cellOf(NodeImport &node, ArrayRef<std::string> activations) {
  const std::string &op = node.proto().op_type();
  if (op == "RNN" && activations[0] == "tanh")
    return Cell::RnnTanh;
  if (op == "RNN" && activations[0] == "relu")
    return Cell::RnnRelu;
  if (op == "RNN" || activations[0] != "sigmoid" ||
      llvm::any_of(activations.drop_front(), [](const std::string &name) { return name != "tanh"; }))
    return std::nullopt;
  if (op == "LSTM")
    return Cell::Lstm;
  return node.attributes.integer("linear_before_reset", 0) ? Cell::GruLinearBeforeReset : Cell::Gru;
}

/// The directions of the node with their cells; none after an error.
SmallVector<Direction> directionsOf(NodeImport &node) {
  const std::string way = node.attributes.text("direction", "forward"), &op = node.proto().op_type();
  const SmallVector<std::string> usual = op == "RNN"   ? SmallVector<std::string>{"tanh"}
                                         : op == "GRU" ? SmallVector<std::string>{"sigmoid", "tanh"}
                                                       : SmallVector<std::string>{"sigmoid", "tanh", "tanh"};
  SmallVector<Direction> directions;
  if (way != "forward" && way != "reverse" && way != "bidirectional") {
    (void)node.error("direction '" + way + "' must be forward, reverse or bidirectional");
    return {};
  }
  const size_t count = way == "bidirectional" ? 2 : 1;
  const std::vector<std::string> given = node.attributes.texts("activations");
  if (!given.empty() && given.size() != count * usual.size()) {
    (void)node.error("has " + std::to_string(given.size()) + " activations, needs " +
                     std::to_string(count * usual.size()));
    return {};
  }
  for (size_t i = 0; i < count; ++i) {
    SmallVector<std::string> names(usual);
    for (size_t a = 0; a < usual.size() && !given.empty(); ++a)
      names[a] = StringRef(given[i * usual.size() + a]).lower();
    auto cell = cellOf(node, names);
    if (!cell) {
      (void)node.error("activations " + llvm::join(names, ", ") + " are not supported; possible are " +
                       llvm::join(usual, ", ") + (op == "RNN" ? " and relu" : ""));
      return {};
    }
    directions.push_back({*cell, way == "reverse" || i == 1});
  }
  return directions;
}

/// Forms of the node that are refused whatever its shapes.
LogicalResult checkForm(NodeImport &node) {
  if (node.attributes.number("clip", 0) != 0)
    return node.error("limits the gates to clip " + llvm::formatv("{0}", node.attributes.number("clip", 0)).str() +
                      ", which is not supported; export it without clip");
  if (node.attributes.integer("input_forget", 0))
    return node.error("couples input and forget gates (input_forget), which is not supported");
  if (node.proto().op_type() == "LSTM" && node.has(7))
    return node.error("has peepholes (input 7), which are not supported; export it without");
  if (const int64_t layout = node.attributes.integer("layout", 0); layout != 0 && layout != 1)
    return node.error("layout is " + std::to_string(layout) + ", must be 0 or 1");
  return success();
}

/// Sequences are as long as the tensor that holds them.
LogicalResult checkLengths(NodeImport &node, const Layer &layer) {
  if (!node.has(4))
    return success();
  const HostTensor *lengths = node.constant(4, "sequence_lens");
  if (!lengths)
    return failure();
  if (!lengths->integral || lengths->size() != layer.batch)
    return node.error("sequence_lens must be " + std::to_string(layer.batch) + " integers");
  for (int64_t length : lengths->ints)
    if (length != layer.steps)
      return node.error("has sequences of " + std::to_string(length) + " steps among " + std::to_string(layer.steps) +
                        "; sequence_lens of fewer steps are not supported, mask what is behind the end instead");
  return success();
}

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

/// What is added once for all steps, null where nothing is, and what a cell that resets behind the product adds to it.
std::pair<Value, Value> biasesOf(NodeImport &node, const Layer &layer, int64_t direction) {
  const bool resets = layer.directions[direction].cell == Cell::GruLinearBeforeReset;
  const int64_t width = layer.width, columns = layer.columns();
  if (!layer.bias)
    return {Value(), resets ? node.filled({width}, 0, "bias") : Value()};
  Value both = partOf(node, layer.bias, direction, {2 * columns});
  auto sum = [&](int64_t count) {
    return binary<train::AddOp>(node, slab(node, both, 0, 0, count), slab(node, both, 0, columns, count));
  };
  if (!resets)
    return {sum(columns), Value()};
  return {joined(node, {sum(2 * width), slab(node, both, 0, 2 * width, width)}, 0),
          slab(node, both, 0, columns + 2 * width, width)};
}

/// What one direction computes.
struct Output {
  Value hidden, last, cell; ///< [T,B,H], [1,B,H] twice
};

/// Null values after an error.
Output outputOf(NodeImport &node, const Layer &layer, int64_t direction) {
  const auto [cell, reverse] = layer.directions[direction];
  const bool lstm = cell == Cell::Lstm;
  auto [bias, inner] = biasesOf(node, layer, direction);
  Value own = partOf(node, layer.weight, direction, {layer.columns(), layer.inputs});
  Value weight = partOf(node, layer.recurrent, direction, {layer.columns(), layer.width});
  Value before = stateOf(node, layer, layer.hidden, direction);
  Value extra = lstm ? stateOf(node, layer, layer.cells, direction) : inner;
  if (!own || !weight || !before || !node.shared().error.empty())
    return {};
  auto product = node.make<train::MatmulOp>(layer.rows, own, bias, false, true, node.f32(1), node.f32(1));
  Value gates = product ? node.reshape(product, {layer.steps, layer.batch, layer.columns()}) : Value();
  const unsigned results = lstm ? 3 : layer.gates == 1 ? 1 : 2;
  auto op = gates ? node.makeWith<train::RecurrenceOp>(results, gates, weight, before, extra, cell, reverse)
                  : train::RecurrenceOp();
  if (!op)
    return {};
  return {op.getHidden(), node.used(1) ? slab(node, op.getHidden(), 0, reverse ? 0 : layer.steps - 1, 1) : Value(),
          node.used(2) && lstm ? node.reshape(op.getResult(2), {1, layer.batch, layer.width}) : Value()};
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

LogicalResult importRecurrence(NodeImport &node) {
  Layer layer;
  layer.directions = directionsOf(node);
  if (layer.directions.empty() || failed(checkForm(node)) || failed(readWeights(node, layer)) ||
      failed(checkLengths(node, layer)) || failed(readBias(node, layer)) ||
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
