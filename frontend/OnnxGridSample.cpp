// SPDX-License-Identifier: Apache-2.0
// GridSample: every point reads the pixels around it, which are rows of x as a table [pixels, channels], and adds them
// up by weights that follow from where it lies. Gradients pass to the pixels by the embedding, to the grid by the
// weights.
#include "frontend/Compositions.h"

using namespace mlir;

namespace sluice {
namespace {

using train::Comparison;
using train::Rounding;

/// A pixel's place along one dimension of x, [N, points, 1], and its share of the result; null: all of it.
struct Tap {
  Value at, weight;
};

/// A sample is a weighted sum of pixels: along each dimension the grid's place gives taps, each an index and a weight,
/// and each combination of taps is a gather of rows [N * area, C]. Composed of ops that have gradients, towards the
/// image by the gather's and towards the grid by the weights'.
class GridSample {
public:
  explicit GridSample(NodeImport &node) : node(node) {}

  LogicalResult run() {
    if (!read())
      return failure();
    const int64_t n = shapeOf(x)[0], channels = shapeOf(x)[1], dimensions = typeOf(x).getRank() - 2;
    SmallVector<SmallVector<Tap>> taps;
    for (int64_t d = 0; d < dimensions; ++d) {
      taps.push_back(tapsAlong(d));
      if (taps.back().empty() || !taps.back().back().at)
        return failure();
    }
    Value table = node.reshape(pixels(), {n * area, channels}), sum;
    SmallVector<size_t> which(dimensions, 0);
    for (bool more = table != Value(); more; more = advance(which, taps)) {
      Value part = corner(table, taps, which);
      sum = sum && part ? binary<train::AddOp>(node, sum, part) : part;
      if (!sum)
        return failure();
    }
    const int64_t order[] = {0, 2, 1};
    SmallVector<int64_t> shape = {n, channels};
    llvm::append_range(shape, shapeOf(grid).drop_front().drop_back());
    return node.result(node.reshape(permuted(node, sum, order), shape));
  }

private:
  /// Operands and attributes; false after an error.
  bool read() {
    x = node.tensor(0);
    grid = x ? node.tensor(1) : Value();
    if (!grid)
      return false;
    mode = node.attributes.text("mode", "linear");
    padding = node.attributes.text("padding_mode", "zeros");
    corners = node.attributes.integer("align_corners", 0) != 0;
    mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode; // their names before opset 20
    const int64_t rank = typeOf(x).getRank();
    if ((mode != "linear" && mode != "nearest" && mode != "cubic") ||
        (padding != "zeros" && padding != "border" && padding != "reflection"))
      return refuse("mode '" + mode + "' with padding_mode '" + padding +
                    "' is unknown; there are linear, nearest and cubic with zeros, border and reflection");
    if (rank < 4 || rank > 5 || (rank == 5 && mode == "cubic") || typeOf(grid).getRank() != rank ||
        shapeOf(grid)[0] != shapeOf(x)[0] || shapeOf(grid).back() != rank - 2)
      return refuse(
          "needs an image or, unless mode is cubic, a volume, and a grid of as many dimensions with a place in " +
          std::string("each of its points, has shapes ") + shapeText(shapeOf(x).vec()) + " and " +
          shapeText(shapeOf(grid).vec()));
    area = llvm::product_of(shapeOf(x).drop_front(2));
    points = typeOf(grid).getNumElements() / shapeOf(grid)[0] / shapeOf(grid).back();
    return true;
  }

  bool refuse(const std::string &why) { return succeeded(node.error(why)); }

  /// [N, area, C]
  Value pixels() {
    SmallVector<int64_t> order = {0};
    for (int64_t i = 2; i < typeOf(x).getRank(); ++i)
      order.push_back(i);
    order.push_back(1);
    return permuted(node, x, order);
  }

  Value shifted(Value value, double by) {
    return value ? plus(value, node.scalar(by, "by" + std::to_string(++names))) : value;
  }
  Value plus(Value a, Value b) { return binary<train::AddOp>(node, a, b); }
  Value times(Value a, Value b) { return binary<train::MulOp>(node, a, b); }

  /// Places mirrored at both ends of the image until they lie in it.
  Value reflected(Value at, int64_t extent) {
    const double low = corners ? 0 : -0.5, span = corners ? extent - 1 : extent;
    if (span == 0)
      return scaled(node, at, 0);
    Value period = node.scalar(2 * span, "period" + std::to_string(++names));
    Value along = unary<train::AbsOp>(node, shifted(at, -low)); // up to span, then down again
    Value folded = unary<train::AbsOp>(node, shifted(binary<train::RemainderOp>(node, along, period), -span));
    return clipped(node, shifted(scaled(node, folded, -1), span + low), 0, extent - 1);
  }

  /// A whole place as one of the image, and the weight with it where places beside the image count as 0.
  Tap inside(Value at, Value weight, int64_t extent) {
    if (padding == "zeros") {
      Value near = clipped(node, at, 0, extent - 1), equal = compared(node, near, at, Comparison::Equal);
      return {near, weight ? times(weight, equal) : equal};
    }
    const bool mirrors =
        padding == "reflection" && mode == "cubic"; // other places are mirrored before they are rounded
    return {mirrors ? reflected(at, extent) : clipped(node, at, 0, extent - 1), weight};
  }

  /// Weights of the four pixels around a place that lies `t` after the second of them: R. Keys, Cubic Convolution
  /// Interpolation for Digital Image Processing, 1981, with the parameter -3/4 of PyTorch and ONNX.
  Value cubicWeight(Value t, int tap) {
    constexpr double a = -0.75;
    Value distance = tap == 0   ? shifted(t, 1)
                     : tap == 1 ? t
                     : tap == 2 ? shifted(scaled(node, t, -1), 1)
                                : shifted(scaled(node, t, -1), 2);
    if (tap == 1 || tap == 2) { // ((a + 2) d - (a + 3)) d^2 + 1
      Value square = times(distance, distance);
      return shifted(times(shifted(scaled(node, distance, a + 2), -(a + 3)), square), 1);
    }
    Value inner = shifted(times(shifted(scaled(node, distance, a), -5 * a), distance), 8 * a);
    return shifted(times(inner, distance), -4 * a);
  }

  /// Dimension `d` of x is number -1 - d of a point: x comes first there.
  SmallVector<Tap> tapsAlong(int64_t d) {
    const int64_t extent = shapeOf(x)[2 + d], last = typeOf(grid).getRank() - 1;
    Value at = slab(node, grid, last, shapeOf(grid)[last] - 1 - d, 1);
    at = at ? node.reshape(at, {shapeOf(x)[0], points, 1}) : at;
    const double half = (corners ? extent - 1 : extent) / 2.0;
    at = shifted(scaled(node, at, half), corners ? half : half - 0.5);
    if (mode != "cubic" && padding != "zeros")
      at = padding == "border" ? clipped(node, at, 0, extent - 1) : reflected(at, extent);
    if (mode == "nearest")
      return {inside(rounded(node, at, Rounding::NearestEven), {}, extent)};
    Value front = rounded(node, at, Rounding::Down), t = binary<train::SubOp>(node, at, front);
    if (mode == "linear")
      return {inside(front, shifted(scaled(node, t, -1), 1), extent), inside(shifted(front, 1), t, extent)};
    SmallVector<Tap> taps;
    for (int tap = 0; tap < 4; ++tap) {
      Value weight = cubicWeight(t, tap);
      taps.push_back(inside(tap == 1 ? front : shifted(front, tap - 1), weight, extent));
    }
    return taps;
  }

  /// The next combination of taps; false after the last one.
  static bool advance(SmallVector<size_t> &which, const SmallVector<SmallVector<Tap>> &taps) {
    for (size_t d = 0; d < which.size(); ++d) {
      if (++which[d] < taps[d].size())
        return true;
      which[d] = 0;
    }
    return false;
  }

  /// One pixel of every point by its weight, [N, points, C].
  Value corner(Value table, const SmallVector<SmallVector<Tap>> &taps, ArrayRef<size_t> which) {
    Value place = images(), weight;
    int64_t stride = area;
    for (auto [d, tap] : llvm::enumerate(which)) {
      stride /= shapeOf(x)[2 + d];
      const Tap &own = taps[d][tap];
      place = plus(place, stride == 1 ? own.at : scaled(node, own.at, static_cast<double>(stride)));
      weight = weight && own.weight ? times(weight, own.weight) : own.weight ? own.weight : weight;
    }
    const int64_t n = shapeOf(x)[0];
    Value ids = place ? node.idsOf(node.reshape(place, {n, points}), n * area, "pixels of the grid") : Value();
    auto op = ids ? node.make<train::EmbeddingOp>(table, ids) : train::EmbeddingOp();
    return op && weight ? times(op.getY(), weight) : op ? op.getY() : Value();
  }

  /// The number of the first pixel of every image, [N, 1, 1].
  Value images() {
    if (first)
      return first;
    const int64_t n = shapeOf(x)[0];
    auto numbers = HostTensor::zeros({n, 1, 1}, /*integral=*/false);
    for (int64_t i = 0; numbers && i < n; ++i)
      numbers->floats[i] = static_cast<double>(i * area);
    return first = numbers ? node.table(std::move(*numbers), "images") : Value();
  }

  NodeImport &node;
  Value x, grid, first;
  std::string mode, padding;
  bool corners = false;
  int64_t area = 1, points = 1; ///< pixels of an image; results of one
  int names = 0;
};

LogicalResult importGridSample(NodeImport &node) { return GridSample(node).run(); }

} // namespace

void addGridSamples(NodeImporters &table) { table["GridSample"] = importGridSample; }

} // namespace sluice
