// SPDX-License-Identifier: Apache-2.0
// DFT as a product with a table of cosines and sines, STFT as a convolution with windowed ones. Complex numbers are
// pairs in the last dimension, as in ONNX.
#include "frontend/Compositions.h"

#include <cmath>

using namespace mlir;

namespace sluice {
namespace {

/// What one complex number contributes to another by e^(-2 pi i n k / length), or its inverse.
struct Rotation {
  int64_t length;
  bool inverse;

  /// The part `to` (0 real, 1 imaginary) of frequency k of the part `from` of number n.
  double factor(int64_t n, int64_t from, int64_t k, int64_t to) const {
    const double angle = 2 * M_PI * static_cast<double>((n % length) * (k % length) % length) / double(length);
    const double sine = inverse ? std::sin(angle) : -std::sin(angle);
    const double plain = from == to ? std::cos(angle) : to == 1 ? sine : -sine;
    return inverse ? plain / double(length) : plain;
  }
};

/// A whole number above 0 that input `input` gives, or `otherwise` without one; nothing after an error.
std::optional<int64_t> numberAt(NodeImport &node, int input, const char *what, int64_t otherwise) {
  if (!node.has(input))
    return otherwise;
  const HostTensor *number = node.constant(input, what);
  if (!number)
    return std::nullopt;
  if (number->size() == 1 && number->integral && number->ints[0] > 0)
    return number->ints[0];
  (void)node.error(std::string(what) + " must be one whole number above 0");
  return std::nullopt;
}

/// x as long as `length` along its dimension `axis`: cut, or with zeros after it.
Value ofLength(NodeImport &node, Value x, int64_t axis, int64_t length) {
  const int64_t present = shapeOf(x)[axis];
  if (length < present)
    return slab(node, x, axis, 0, length);
  if (length == present)
    return x;
  std::vector<int64_t> shape = shapeOf(x).vec();
  shape[axis] = length - present;
  Value zero = node.scalar(0, "zero");
  return zero
             ? joined(node, {x, repeated(node, node.reshape(zero, SmallVector<int64_t>(shape.size(), 1)), shape)}, axis)
             : zero;
}

/// The table [length * parts, bins * 2] of a transform of numbers of that many parts.
std::optional<HostTensor> tableOf(const Rotation &rotation, int64_t parts, int64_t bins) {
  auto table = HostTensor::zeros({rotation.length * parts, bins * 2}, /*integral=*/false);
  for (int64_t n = 0; table && n < rotation.length; ++n)
    for (int64_t from = 0; from < parts; ++from)
      for (int64_t k = 0; k < bins; ++k)
        for (int64_t to : {0, 1})
          table->floats[((n * parts + from) * bins + k) * 2 + to] = rotation.factor(n, from, k, to);
  return table;
}

/// The dimension that is transformed: an input since opset 20, an attribute before; -1 after an error.
int64_t axisOf(NodeImport &node, int64_t rank) {
  int64_t axis = node.attributes.integer("axis", 1);
  if (node.opset >= 20) {
    const HostTensor *given = node.has(2) ? node.constant(2, "the axis") : nullptr;
    if (node.has(2) && (!given || given->size() != 1 || !given->integral)) {
      if (given)
        (void)node.error("the axis must be one whole number");
      return -1;
    }
    axis = given ? given->ints[0] : -2;
  }
  axis = node.axis(axis, rank);
  if (axis == rank - 1) {
    (void)node.error("the last dimension holds the parts of complex numbers; it cannot be transformed");
    return -1;
  }
  return axis;
}

/// A transform is linear: rows [.., length * parts] times a constant table [length * parts, bins * 2]. That is
/// quadratic in the length, but it has the gradient of any product.
LogicalResult importDft(NodeImport &node) {
  Value x = node.tensor(0);
  if (!x)
    return failure();
  const int64_t rank = typeOf(x).getRank(), parts = rank ? shapeOf(x).back() : 0;
  if (rank < 2 || (parts != 1 && parts != 2))
    return node.error("transforms a tensor of " + shapeText(shapeOf(x).vec()) +
                      ", whose last dimension must be 1 (real) or 2 (complex)");
  const int64_t axis = axisOf(node, rank);
  const auto length = axis < 0 ? std::nullopt : numberAt(node, 1, "dft_length", shapeOf(x)[axis]);
  if (!length)
    return failure();
  const bool inverse = node.attributes.integer("inverse", 0) != 0, half = node.attributes.integer("onesided", 0) != 0;
  if (half && (inverse || parts != 1))
    return node.error("onesided is of real numbers and not of an inverse");
  const int64_t bins = half ? *length / 2 + 1 : *length;
  auto table = tableOf({*length, inverse}, parts, bins);
  if (!table)
    return node.error("a transform of " + std::to_string(*length) + " numbers needs too large a table");
  // The dimension comes before that of the parts.
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis)
      order.push_back(i);
  order.append({axis, rank - 1});
  Value last = permuted(node, ofLength(node, x, axis, *length), order);
  Value factors = last ? node.table(std::move(*table), "factors") : Value();
  if (!factors)
    return failure();
  SmallVector<int64_t> shape(shapeOf(last));
  Value rows = node.reshape(last, {typeOf(last).getNumElements() / (*length * parts), *length * parts});
  auto product = rows ? node.make<train::MatmulOp>(rows, factors, Value(), false, false, node.f32(1), node.f32(1))
                      : train::MatmulOp();
  if (!product)
    return failure();
  shape[rank - 2] = bins, shape[rank - 1] = 2;
  SmallVector<int64_t> back(rank);
  for (auto [to, from] : llvm::enumerate(order))
    back[from] = static_cast<int64_t>(to);
  Value result = node.reshape(product.getY(), shape);
  return result ? node.result(permuted(node, result, back)) : failure();
}

/// The window that input 2 of an STFT gives; null after an error.
const HostTensor *windowOf(NodeImport &node) {
  const HostTensor *window = node.constant(2, "the window");
  if (window && (window->integral || window->shape.size() != 1)) {
    (void)node.error("the window must be a vector of floats");
    return nullptr;
  }
  return window;
}

/// Filters [bins * 2, parts, 1, length] of a convolution with the windowed transform.
std::optional<HostTensor> filtersOf(int64_t length, int64_t parts, int64_t bins, const HostTensor *window) {
  const Rotation rotation{length, false};
  auto filters = HostTensor::zeros({bins * 2, parts, 1, length}, /*integral=*/false);
  for (int64_t k = 0; filters && k < bins; ++k)
    for (int64_t to : {0, 1})
      for (int64_t from = 0; from < parts; ++from)
        for (int64_t n = 0; n < length; ++n)
          filters->floats[((2 * k + to) * parts + from) * length + n] =
              rotation.factor(n, from, k, to) * (window ? window->number(n) : 1);
  return filters;
}

/// Frames are windows of a convolution, the parts of a complex signal its channels; the filters hold the cosines and
/// sines times the window. The result [batch, 2 * bins, frames] is turned to [batch, frames, bins, 2].
LogicalResult importStft(NodeImport &node) {
  Value signal = node.tensor(0);
  const HostTensor *window = signal && node.has(2) ? windowOf(node) : nullptr;
  const auto step = signal ? numberAt(node, 1, "frame_step", 0) : std::nullopt;
  if (!step || (node.has(2) && !window))
    return failure();
  const int64_t rank = typeOf(signal).getRank(), parts = rank == 3 ? shapeOf(signal)[2] : 1;
  if (*step < 1 || (rank != 2 && rank != 3) || (parts != 1 && parts != 2))
    return node.error("takes frames of a signal [batch, length], or [batch, length, 1 or 2], and a step, not of " +
                      shapeText(shapeOf(signal).vec()));
  const auto length = numberAt(node, 3, "frame_length", window ? window->size() : shapeOf(signal)[1]);
  if (!length)
    return failure();
  if (*length > shapeOf(signal)[1] || (window && window->size() != *length))
    return node.error("frames of " + std::to_string(*length) + " do not fit a signal of " +
                      std::to_string(shapeOf(signal)[1]) + " and a window of " +
                      std::to_string(window ? window->size() : *length));
  const bool half = node.attributes.integer("onesided", 1) != 0;
  if (half && parts == 2)
    return node.error("onesided is of real signals");
  const int64_t bins = half ? *length / 2 + 1 : *length, batch = shapeOf(signal)[0];
  auto filters = filtersOf(*length, parts, bins, window);
  if (!filters)
    return node.error("frames of " + std::to_string(*length) + " numbers need too large a table");
  // A line is an image of height 1, whose filters step along its width.
  Value channels = parts == 1 ? signal : permuted(node, signal, {0, 2, 1});
  Value line = channels ? node.reshape(channels, {batch, parts, 1, shapeOf(signal)[1]}) : Value();
  Value factors = line ? node.table(std::move(*filters), "filters") : Value();
  auto conv = factors ? node.make<train::ConvOp>(line, factors, Value(), ArrayRef<int64_t>{1, *step},
                                                 ArrayRef<int64_t>{0, 0, 0, 0}, ArrayRef<int64_t>{1, 1}, uint64_t(1))
                      : train::ConvOp();
  if (!conv)
    return failure();
  const int64_t frames = shapeOf(conv.getY())[3];
  Value bands = node.reshape(conv.getY(), {batch, 2 * bins, frames});
  Value turned = bands ? permuted(node, bands, {0, 2, 1}) : Value();
  return turned ? node.result(node.reshape(turned, {batch, frames, bins, 2})) : failure();
}

} // namespace

void addFourier(NodeImporters &table) {
  table["DFT"] = importDft;
  table["STFT"] = importStft;
}

} // namespace sluice
