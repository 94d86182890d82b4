// SPDX-License-Identifier: Apache-2.0
// Ops that write elements at indices. Constant ones make embeddings of what is there with the updates after it; those
// that are data, train.scatter_rows of the updates, by which what is there is replaced, or which it meets.
#include "frontend/DataPositions.h"
#include "frontend/IndexedPositions.h"
#include <limits>

using namespace mlir;

namespace sluice {
namespace {

/// One after the other, [old + added, size].
Value stacked(NodeImport &node, Value old, Value added) { return old ? joined(node, {old, added}, 0) : added; }

/// x [blocks, size] with the updates [count, size] in place of the blocks at their positions; of several the last one.
Value replaced(NodeImport &node, Value x, Value updates, const HostTensor &positions) {
  const int64_t blocks = shapeOf(x)[0], count = positions.size();
  HostTensor ids = *HostTensor::zeros({blocks}, /*integral=*/true);
  std::fill(ids.ints.begin(), ids.ints.end(), -1);
  for (int64_t i = 0; i < count; ++i)
    ids.ints[positions.ints[i]] = i;
  const bool all = !llvm::is_contained(ids.ints, -1);
  for (int64_t i = 0; i < blocks && !all; ++i)
    ids.ints[i] = ids.ints[i] < 0 ? i : blocks + ids.ints[i];
  Value rows = node.indices(std::move(ids), "indices");
  return rowsOf(node, stacked(node, all ? Value() : x, updates), rows);
}

/// What leaves any other number as it is.
double neutral(Scatter how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return how == Scatter::Add ? 0 : how == Scatter::Multiply ? 1 : how == Scatter::Largest ? -infinity : infinity;
}

/// Of equal ones the first takes the gradient.
Value met(NodeImport &node, Value a, Value b, Scatter how) {
  if (how == Scatter::Add)
    return binary<train::AddOp>(node, a, b);
  if (how == Scatter::Multiply)
    return binary<train::MulOp>(node, a, b);
  const bool largest = how == Scatter::Largest;
  Value first = compared(node, largest ? b : a, largest ? a : b, train::Comparison::LessOrEqual);
  return selected(node, first, a, b);
}

/// x [blocks, size] with the updates at their positions added to it, or whatever `how` says: all blocks' first updates
/// at once, then their second and so on; where a block has no more, a row that changes nothing.
Value combined(NodeImport &node, Value x, Value updates, const HostTensor &positions, Scatter how) {
  constexpr size_t mostSums = 16;
  const int64_t blocks = shapeOf(x)[0], count = positions.size();
  std::vector<std::vector<int64_t>> rounds;
  std::vector<size_t> seen(blocks, 0);
  for (int64_t i = 0; i < count; ++i) {
    const size_t round = seen[positions.ints[i]]++;
    if (round >= mostSums) {
      (void)node.error("lets more than " + std::to_string(mostSums) + " updates meet in one place, which is not " +
                       "supported; sum them before");
      return {};
    }
    if (round == rounds.size())
      rounds.emplace_back(blocks, count); // the row that changes nothing
    rounds[round][positions.ints[i]] = i;
  }
  Value table = joined(node, {updates, node.filled({1, shapeOf(x)[1]}, neutral(how), "nothing")}, 0);
  for (size_t round = 0; x && round < rounds.size(); ++round) {
    Value ids = node.indices(HostTensor::vector(std::move(rounds[round])), "indices" + std::to_string(round));
    x = met(node, x, rowsOf(node, table, ids), how);
  }
  return x;
}

/// What a scatter writes where: x [blocks, size], updates [count, size].
struct Writes {
  Scatter how;
  Value x, updates;
};

/// Nothing after an error.
std::optional<Writes> writesOf(NodeImport &node, Value x, int64_t count, int64_t size) {
  const std::string word = node.attributes.text("reduction", "none");
  const std::optional<Scatter> how = parseScatter(word);
  if (!how) {
    (void)node.error("reduction '" + word + "' is none of none, add, mul, max and min");
    return {};
  }
  Value updates = node.tensor(2);
  if (!updates)
    return {};
  if (typeOf(updates).getNumElements() / size != count || typeOf(updates).getNumElements() % size) {
    (void)node.error("updates of shape " + shapeText(shapeOf(updates).vec()) + " do not fit " + std::to_string(count) +
                     " places of " + std::to_string(size) + " elements in a tensor of shape " +
                     shapeText(shapeOf(x).vec()));
    return {};
  }
  const int64_t blocks = typeOf(x).getNumElements() / size;
  if (!HostTensor::fits({blocks}) || !HostTensor::fits({count})) {
    (void)node.error("writes " + std::to_string(count) + " updates into " + std::to_string(blocks) +
                     " places, of either more than the " + std::to_string(HostTensor::maximumElements) +
                     " that are told apart");
    return {};
  }
  Writes writes{*how, node.reshape(x, {blocks, size}), node.reshape(updates, {count, size})};
  return writes.x && writes.updates ? std::optional(writes) : std::nullopt;
}

/// x with updates at positions of its blocks of `size` elements.
LogicalResult scatter(NodeImport &node, Value x, const HostTensor &positions, int64_t size) {
  const auto writes = writesOf(node, x, positions.size(), size);
  if (!writes)
    return failure();
  const auto [how, rows, added] = *writes;
  Value y =
      how == Scatter::Replace ? replaced(node, rows, added, positions) : combined(node, rows, added, positions, how);
  return node.result(node.reshape(y, shapeOf(x)));
}

/// Of updates at places that are data: for each row of the result, [blocks, columns], the sum of its updates, or of
/// their largest elements.
Value scattered(NodeImport &node, Value updates, Value ids, int64_t blocks, bool largest) {
  return updates ? node.makeAs<train::ScatterRowsOp>({blocks, shapeOf(updates)[1]}, updates, ids, largest) : Value();
}

/// Which of several updates stays: for each row the number of the last one of those that `candidates` [count, columns]
/// marks by 1, counted from 1, and for each update 1 where it is that one.
struct Last {
  Value number, isLast; ///< [blocks, columns], [count, columns]
};

/// Numbers updates from 1 on and scatters the largest number; rows that nothing names get less than 1, which selects
/// nothing. writesOf() has made sure that so many numbers fit a table.
Last lastOf(NodeImport &node, Value candidates, Value ids, int64_t blocks) {
  const int64_t count = typeOf(ids).getNumElements();
  HostTensor order = *HostTensor::zeros({count, 1}, /*integral=*/false);
  for (int64_t i = 0; i < count; ++i)
    order.floats[i] = static_cast<double>(i + 1);
  Value numbers = node.table(std::move(order), "order");
  Value number = scattered(node, candidates ? binary<train::MulOp>(node, candidates, numbers) : numbers, ids, blocks,
                           /*largest=*/true);
  return {number, number ? compared(node, rowsOf(node, number, ids), numbers, train::Comparison::Equal) : Value()};
}

Value chosen(NodeImport &node, Value updates, Value isChosen, Value ids, int64_t blocks) {
  Value nothing = node.scalar(0, "nothing");
  return scattered(node, selected(node, isChosen, updates, nothing), ids, blocks, /*largest=*/false);
}

/// Of several updates of a row the last one stays, as with constant indices.
Value replacedByData(NodeImport &node, Value x, Value updates, Value ids) {
  const int64_t blocks = shapeOf(x)[0];
  const Last last = lastOf(node, Value(), ids, blocks);
  return selected(node, last.number, chosen(node, updates, last.isLast, ids, blocks), x);
}

/// Of equal updates the last one takes the gradient, of updates and what is there the latter.
Value largestByData(NodeImport &node, Value x, Value updates, Value ids) {
  const int64_t blocks = shapeOf(x)[0];
  Value largest = scattered(node, updates, ids, blocks, /*largest=*/true);
  if (!largest)
    return {};
  Value isLargest = compared(node, rowsOf(node, largest, ids), updates, train::Comparison::Equal);
  const Last last = isLargest ? lastOf(node, isLargest, ids, blocks) : Last();
  Value update = chosen(node, updates, last.isLast, ids, blocks);
  return selected(node, compared(node, largest, x, train::Comparison::LessOrEqual), x, update);
}

/// x with updates at ids, which are data, of its blocks of `size` elements.
LogicalResult scatterByData(NodeImport &node, Value x, Value ids, int64_t size) {
  const auto writes = writesOf(node, x, typeOf(ids).getNumElements(), size);
  if (!writes)
    return failure();
  const auto [how, rows, added] = *writes;
  Value y;
  switch (how) {
  case Scatter::Replace:
    y = replacedByData(node, rows, added, ids);
    break;
  case Scatter::Add:
    y = binary<train::AddOp>(node, rows, scattered(node, added, ids, shapeOf(rows)[0], /*largest=*/false));
    break;
  case Scatter::Largest:
    y = largestByData(node, rows, added, ids);
    break;
  case Scatter::Smallest: {
    Value negative = scaled(node, added, -1);
    y = scaled(node, largestByData(node, scaled(node, rows, -1), negative, ids), -1);
    break;
  }
  case Scatter::Multiply:
    return node.error("multiplies by updates at indices that are data; export it with constant indices, or add "
                      "logarithms");
  }
  return node.result(node.reshape(y, shapeOf(x)));
}

LogicalResult importScatterElements(NodeImport &node) {
  Value x = node.tensor(0);
  const int64_t axis = x ? node.axis(node.attributes.integer("axis", 0), typeOf(x).getRank()) : -1;
  if (axis < 0)
    return failure();
  const HostTensor *index = node.known(1);
  if (!index) {
    Value ids = elementsByData(node, shapeOf(x), axis);
    return ids ? scatterByData(node, x, ids, 1) : failure();
  }
  Result<HostTensor> positions = elementPositions(shapeOf(x).vec(), *index, axis);
  return positions ? scatter(node, x, *positions, 1) : node.error(positions.error());
}

LogicalResult importScatterNd(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  const HostTensor *index = node.known(1);
  if (!index) {
    auto named = blocksByData(node, shapeOf(x), /*batchDims=*/0);
    return named ? scatterByData(node, x, named->ids, named->size) : failure();
  }
  Result<IndexedBlocks> named = blockPositions(shapeOf(x).vec(), *index, /*batchDims=*/0);
  return named ? scatter(node, x, named->positions, named->size) : node.error(named.error());
}

} // namespace

void addScatters(NodeImporters &table) {
  table["Scatter"] = importScatterElements; // its name before opset 11
  table["ScatterElements"] = importScatterElements;
  table["ScatterND"] = importScatterNd;
}

} // namespace sluice
