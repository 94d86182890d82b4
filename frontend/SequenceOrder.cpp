// SPDX-License-Identifier: Apache-2.0
// Sequences back to front, each of its own length: ReverseSequence, and what recurrent layers do that run backwards.
#include "frontend/RecurrentLayer.h"

using namespace mlir;

namespace sluice {

LogicalResult readLengths(NodeImport &node, int input, Layer &layer) {
  if (!node.has(input))
    return success();
  if (!node.isIntegral(input))
    return node.error("sequence_lens must be integers: an input of the model, a constant, or computed from these");
  const HostTensor *known = node.known(input);
  for (int64_t i = 0; known && i < known->size(); ++i)
    if (known->ints[i] < 0 || known->ints[i] > layer.steps)
      return node.error("has sequences of " + std::to_string(known->ints[i]) + " steps, outside 0 to " +
                        std::to_string(layer.steps));
  Value lengths = node.tensor(input);
  if (lengths && shapeOf(lengths) != ArrayRef<int64_t>{layer.batch})
    return node.error("sequence_lens must be " + std::to_string(layer.batch) + " integers, has shape " +
                      shapeText(shapeOf(lengths).vec()));
  if (!lengths || (known && llvm::all_of(known->ints, [&](int64_t length) { return length == layer.steps; })))
    return success(bool(lengths));
  if (!known)
    node.boundIds(node.moved(input), layer.steps + 1);
  layer.lengths = node.reshape(lengths, {1, layer.batch, 1});
  return success(bool(layer.lengths));
}

Value turned(NodeImport &node, const Layer &layer, Value rows) {
  Value steps = stepNumbers(node, layer), one = node.scalar(1, "one");
  auto batch = HostTensor::zeros({1, layer.batch, 1}, /*integral=*/false);
  for (int64_t i = 0; i < layer.batch; ++i)
    batch->floats[i] = static_cast<double>(i);
  Value fromEnd = binary<train::SubOp>(node, binary<train::SubOp>(node, layer.lengths, one), steps);
  Value step = selected(node, insideOf(node, layer), fromEnd, steps);
  Value samples = node.table(std::move(*batch), "samples");
  Value row = binary<train::AddOp>(node, scaled(node, step, static_cast<double>(layer.batch)), samples);
  const int64_t count = layer.steps * layer.batch;
  Value ids = row ? node.idsOf(node.reshape(row, {count}), count, "steps of sequences") : row;
  return rowsOf(node, rows, ids);
}

namespace {

/// Every sequence of [T,...] from its last step to its first, all of the tensor's length.
Value reversedSteps(NodeImport &node, Value x, int64_t steps) {
  auto order = HostTensor::zeros({steps}, /*integral=*/true);
  if (!order) {
    (void)node.error("has " + std::to_string(steps) + " steps, more than can be counted");
    return {};
  }
  for (int64_t i = 0; i < steps; ++i)
    order->ints[i] = steps - 1 - i;
  return rowsOf(node, x, node.indices(std::move(*order), "order"));
}

LogicalResult importReverseSequence(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t time = node.attributes.integer("time_axis", 0), batch = node.attributes.integer("batch_axis", 1);
  if (!x)
    return failure();
  if (typeOf(x).getRank() < 2 || time == batch || time < 0 || batch < 0 || time > 1 || batch > 1)
    return node.error("time_axis " + std::to_string(time) + " and batch_axis " + std::to_string(batch) + " of " +
                      shapeText(shapeOf(x).vec()) + " must be the first two dimensions");
  SmallVector<int64_t> turn = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
  if (time == 1)
    std::swap(turn[0], turn[1]);
  Value rows = permuted(node, x, turn);
  Layer layer;
  layer.steps = shapeOf(x)[time], layer.batch = shapeOf(x)[batch];
  if (!rows || failed(readLengths(node, 1, layer)))
    return failure();
  const SmallVector<int64_t> shape(shapeOf(rows));
  if (!layer.lengths)
    return node.result(permuted(node, reversedSteps(node, rows, layer.steps), turn));
  SmallVector<int64_t> merged(shape.begin() + 1, shape.end());
  merged[0] = layer.steps * layer.batch;
  Value turnedRows = turned(node, layer, node.reshape(rows, merged));
  return turnedRows ? node.result(permuted(node, node.reshape(turnedRows, shape), turn)) : failure();
}

} // namespace

void addSequenceOrders(NodeImporters &table) { table["ReverseSequence"] = importReverseSequence; }

} // namespace sluice
