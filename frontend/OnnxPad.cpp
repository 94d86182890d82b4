// SPDX-License-Identifier: Apache-2.0
// Ops that put copies of a tensor's slabs beside it: Pad in all modes and Tile. And products with constant triangles:
// CumSum, Trilu and Col2Im.
#include "frontend/Compositions.h"
#include "frontend/Windows.h"

using namespace mlir;

namespace sluice {
namespace {

/// Pads of one dimension: elements in front and after; negative ones cut.
struct Pads {
  int64_t before = 0, after = 0;
};

/// Of all dimensions; empty after an error.
std::vector<Pads> readPads(NodeImport &node, ArrayRef<int64_t> shape) {
  auto given = node.integers("pads", 1), axes = node.integers("axes", 3);
  if (!node.shared().error.empty())
    return {};
  const int64_t rank = shape.size(), count = axes ? axes->size() : rank;
  if (!given || static_cast<int64_t>(given->size()) != 2 * count) {
    (void)node.error("needs " + std::to_string(2 * count) + " pads, has " + std::to_string(given ? given->size() : 0));
    return {};
  }
  std::vector<Pads> pads(rank);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = axes ? node.axis((*axes)[i], rank) : i;
    if (axis < 0)
      return {};
    pads[axis] = {(*given)[i], (*given)[count + i]};
    auto [before, after] = pads[axis];
    if (std::min(before, after) < -shape[axis] || std::max(before, after) > (1 << 30) ||
        shape[axis] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 1) {
      (void)node.error("pads " + std::to_string(before) + " and " + std::to_string(after) + " do not fit the extent " +
                       std::to_string(shape[axis]));
      return {};
    }
  }
  return pads;
}

/// What stands beside x along a dimension; null for nothing, or after an error.
class Padding {
public:
  Padding(NodeImport &node, std::string mode, double number) : node(node), mode(std::move(mode)), number(number) {}

  Value padded(Value x, int64_t axis, Pads pads) {
    x = slab(node, x, axis, std::max<int64_t>(0, -pads.before),
             shapeOf(x)[axis] + std::min<int64_t>(pads.before, 0) + std::min<int64_t>(pads.after, 0));
    if (!x || !fits(shapeOf(x)[axis], std::max(pads.before, pads.after)))
      return {};
    SmallVector<Value> parts;
    if (pads.before > 0)
      addSide(parts, x, axis, pads.before, /*front=*/true);
    parts.push_back(x);
    if (pads.after > 0)
      addSide(parts, x, axis, pads.after, /*front=*/false);
    return joined(node, parts, axis);
  }

private:
  bool fits(int64_t extent, int64_t most) {
    constexpr int64_t mostSlabs = 256; // reflections are put together from slabs of one
    const int64_t limit = mode == "reflect" ? std::min(extent - 1, mostSlabs) : mode == "wrap" ? extent : most;
    if (most > limit)
      (void)node.error("a pad of " + std::to_string(most) + " is more than the " + std::to_string(limit) +
                       " that mode '" + mode + "' supports for an extent of " + std::to_string(extent));
    return most <= limit;
  }

  /// Appends `count` elements of padding in front of x or after it, in the order in which they stand. Reflection leaves
  /// the edge itself out and is put together from slabs of one, as no kernel turns a dimension around.
  void addSide(SmallVectorImpl<Value> &parts, Value x, int64_t axis, int64_t count, bool front) {
    const int64_t extent = shapeOf(x)[axis];
    if (mode == "wrap")
      return parts.push_back(slab(node, x, axis, front ? extent - count : 0, count));
    if (mode == "reflect") {
      for (int64_t i = 0; i < count; ++i)
        parts.push_back(slab(node, x, axis, front ? count - i : extent - 2 - i, 1));
      return;
    }
    SmallVector<int64_t> shape(shapeOf(x));
    shape[axis] = count;
    Value one = mode == "edge" ? slab(node, x, axis, front ? 0 : extent - 1, 1) : node.scalar(number, "padding");
    parts.push_back(one ? node.makeAs<train::BroadcastToOp>(shape, one, node.f32(1)) : Value());
  }

  NodeImport &node;
  const std::string mode;
  const double number;
};

LogicalResult importPad(NodeImport &node) {
  Value x = node.tensor(0);
  const std::string mode = node.attributes.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return node.error("mode '" + mode + "' is none of constant, edge, reflect and wrap");
  const HostTensor *value = node.has(2) ? node.constant(2, "the padding value") : nullptr;
  if (value && value->size() != 1)
    return node.error("the padding value must be a single number");
  std::vector<Pads> pads = x ? readPads(node, shapeOf(x)) : std::vector<Pads>();
  if (!x || !node.shared().error.empty())
    return failure();
  Padding padding(node, mode, value ? value->number(0) : node.attributes.number("value", 0));
  for (int64_t axis = 0; x && axis < static_cast<int64_t>(pads.size()); ++axis)
    x = padding.padded(x, axis, pads[axis]);
  return node.result(x);
}

/// A dimension of its own for the copies, which a reshape joins with the one that is repeated.
LogicalResult importTile(NodeImport &node) {
  Value x = node.tensor(0);
  auto repeats = x ? node.integers("repeats", 1) : std::nullopt;
  if (!repeats)
    return failure();
  if (static_cast<int64_t>(repeats->size()) != typeOf(x).getRank())
    return node.error("has " + std::to_string(repeats->size()) + " repeats for an input of shape " +
                      shapeText(shapeOf(x).vec()));
  for (size_t axis = 0; axis < repeats->size(); ++axis) {
    const int64_t copies = (*repeats)[axis], extent = x ? shapeOf(x)[axis] : 0;
    if (copies < 1 || copies > node.spec().limits.extent / std::max<int64_t>(extent, 1))
      return node.error("cannot repeat an extent of " + std::to_string(extent) + " " + std::to_string(copies) +
                        " times");
    auto [outer, inner] = around(shapeOf(x), axis);
    SmallVector<int64_t> shape(shapeOf(x));
    shape[axis] *= copies;
    Value apart = node.reshape(x, {outer, 1, extent * inner});
    Value all = apart ? repeated(node, apart, {outer, copies, extent * inner}) : Value();
    x = all ? node.reshape(all, shape) : Value();
    if (!x)
      return failure();
  }
  return node.result(x);
}

/// [rows, columns] with 1 where `isOne` says so of row and column, else 0; null after an error.
Value triangle(NodeImport &node, int64_t rows, int64_t columns, llvm::function_ref<bool(int64_t, int64_t)> isOne) {
  auto matrix = HostTensor::zeros({rows, columns}, /*integral=*/false);
  if (!matrix) {
    (void)node.error("a triangle of " + shapeText({rows, columns}) + " has more than the " +
                     std::to_string(HostTensor::maximumElements) + " elements that are computed at compile time");
    return {};
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      matrix->floats[i * columns + j] = isOne(i, j);
  return node.table(std::move(*matrix), "triangle");
}

/// The product with a triangle of ones along the dimension.
LogicalResult importCumSum(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *given = x ? node.constant(1, "the axis") : nullptr;
  if (!given)
    return failure();
  if (given->size() != 1 || !given->integral)
    return node.error("the axis must be a single integer");
  const int64_t rank = typeOf(x).getRank(), axis = node.axis(given->ints[0], rank);
  if (axis < 0)
    return failure();
  const int64_t extent = shapeOf(x)[axis], shift = node.attributes.integer("exclusive", 0) ? 1 : 0;
  const bool reverse = node.attributes.integer("reverse", 0);
  Value ones = triangle(node, extent, extent,
                        [&](int64_t from, int64_t to) { return reverse ? from >= to + shift : from <= to - shift; });
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[axis], order[rank - 1]); // its own inverse
  Value last = ones ? permuted(node, x, order) : Value();
  SmallVector<int64_t> shape(last ? shapeOf(last) : ArrayRef<int64_t>());
  Value rows = last ? node.reshape(last, {typeOf(x).getNumElements() / extent, extent}) : Value();
  auto sums = rows ? node.make<train::MatmulOp>(rows, ones, Value(), false, false, node.f32(1), node.f32(1))
                   : train::MatmulOp();
  return sums ? node.result(permuted(node, node.reshape(sums.getY(), shape), order)) : failure();
}

/// The diagonal is clamped because any int64 is allowed: beyond the matrix all of them mean the same.
LogicalResult importTrilu(NodeImport &node) {
  Value x = node.tensor(0);
  const HostTensor *given = node.has(1) ? node.constant(1, "the diagonal") : nullptr;
  if (!x || (node.has(1) && !given))
    return failure();
  if (typeOf(x).getRank() < 2 || (given && (given->size() != 1 || !given->integral)))
    return node.error("needs matrices and a single integer, has an input of shape " + shapeText(shapeOf(x).vec()));
  const int64_t most = int64_t(1) << 40, diagonal = std::clamp(given ? given->ints[0] : 0, -most, most);
  const bool upper = node.attributes.integer("upper", 1);
  auto extents = shapeOf(x).take_back(2);
  Value ones = triangle(node, extents[0], extents[1], [&](int64_t row, int64_t column) {
    return upper ? column - row >= diagonal : column - row <= diagonal;
  });
  return node.result(binary<train::MulOp>(node, x, ones));
}

/// Blocks, one beside the other in the last dimension, added where they overlap: a transposed convolution of what they
/// hold with weights that put each element of a block at its place.
LogicalResult importCol2Im(NodeImport &node) {
  Value x = node.tensor(0);
  auto size = x ? node.integers("image_shape", 1) : std::nullopt,
       kernel = size ? node.integers("block_shape", 2) : size;
  if (!kernel)
    return failure();
  if (typeOf(x).getRank() != 3 || size->size() != 2 || kernel->size() != 2)
    return node.error("puts blocks of shape " + shapeText(*kernel) + " into an image of shape " + shapeText(*size) +
                      "; supported are images of two dimensions");
  const int64_t batch = shapeOf(x)[0], rows = shapeOf(x)[1], places = shapeOf(x)[2];
  auto window = readWindow(node, node.reshape(x, {batch, rows, 1, places}), *kernel);
  if (failed(window))
    return failure();
  constexpr int64_t largest = int64_t(1) << 30; // as that of all windows
  int64_t along[2] = {0, 0}, area = 0;
  for (int i = 0; i < 2; ++i)
    if (const int64_t extent = (*size)[i]; extent >= 1 && extent <= largest)
      if (int64_t room = extent + window->pads[i] + window->pads[2 + i] - window->span(i); room >= 0)
        along[i] = room / window->strides[i] + 1;
  if (__builtin_mul_overflow((*kernel)[0], (*kernel)[1], &area) || rows % area || along[0] == 0 || places % along[0] ||
      places / along[0] != along[1])
    return node.error("an operand of shape " + shapeText(shapeOf(x).vec()) + " does not hold blocks of shape " +
                      shapeText(*kernel) + " for " + std::to_string(along[0]) + " times " + std::to_string(along[1]) +
                      " places in an image of shape " + shapeText(*size));
  auto unit = HostTensor::zeros({area, 1, (*kernel)[0], (*kernel)[1]}, /*integral=*/false);
  if (!unit)
    return node.error("blocks of shape " + shapeText(*kernel) + " are larger than is supported");
  for (int64_t i = 0; i < area; ++i)
    unit->floats[i * area + i] = 1;
  Value weights = node.table(std::move(*unit), "places"),
        blocks = node.reshape(x, {batch * (rows / area), area, along[0], along[1]});
  if (!weights || !blocks)
    return failure();
  auto image = node.make<train::ConvTransposeOp>(blocks, weights, window->strides, window->pads, window->dilations, 1,
                                                 ArrayRef<int64_t>(*size));
  return image ? node.result(node.reshape(image.getY(), {batch, rows / area, (*size)[0], (*size)[1]})) : failure();
}

} // namespace

void addPaddings(NodeImporters &table) {
  table["Pad"] = importPad;
  table["Tile"] = importTile;
  table["CumSum"] = importCumSum;
  table["Trilu"] = importTrilu;
  table["Col2Im"] = importCol2Im;
}

} // namespace sluice
