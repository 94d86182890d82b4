// SPDX-License-Identifier: Apache-2.0
// Single ops, checked as NodeImport::make does.
#include "frontend/Compositions.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice {

Value slab(NodeImport &node, Value x, int64_t axis, int64_t start, int64_t length) {
  if (!x)
    return x;
  return node.folded(node.make<train::SliceOp>(x, static_cast<uint64_t>(axis), static_cast<uint64_t>(start),
                                               static_cast<uint64_t>(length)));
}

Value joined(NodeImport &node, ArrayRef<Value> parts, int64_t axis) {
  if (llvm::is_contained(parts, Value()))
    return {};
  return node.folded(node.make<train::ConcatOp>(ValueRange(parts), static_cast<uint64_t>(axis)));
}

Value compared(NodeImport &node, Value a, Value b, train::Comparison predicate) {
  return binary<train::CompareOp>(node, a, b, predicate);
}

Value selected(NodeImport &node, Value condition, Value a, Value b) {
  if (!condition || !a || !b)
    return {};
  int64_t rank = std::max({typeOf(condition).getRank(), typeOf(a).getRank(), typeOf(b).getRank()});
  b = node.asImageOperand(b, rank);
  a = node.asImageOperand(a, rank);
  auto op = node.make<train::SelectOp>(node.asImageOperand(condition, rank), a, b);
  return op ? op.getY() : Value();
}

Value scaled(NodeImport &node, Value x, double factor) {
  auto op = x ? node.make<train::ScaleOp>(x, node.f32(factor)) : train::ScaleOp();
  return op ? op.getY() : Value();
}

Value rounded(NodeImport &node, Value x, train::Rounding rounding) {
  auto op = x ? node.make<train::RoundOp>(x, rounding) : train::RoundOp();
  return op ? op.getY() : Value();
}

Value clipped(NodeImport &node, Value x, double low, double high) {
  auto op = x ? node.make<train::ClipOp>(x, node.f32(low), node.f32(high)) : train::ClipOp();
  return op ? op.getY() : Value();
}

/// x^exponent, exponent >= 1, by squares.
static Value product(NodeImport &node, Value x, int64_t exponent) {
  Value y;
  for (Value square = x; square; square = binary<train::MulOp>(node, square, square)) {
    if (exponent & 1)
      y = y ? binary<train::MulOp>(node, y, square) : square;
    exponent >>= 1;
    if (exponent == 0)
      return y;
  }
  return {};
}

/// Whole exponents are products, which numbers below 0 have, too.
Value power(NodeImport &node, Value x, double exponent) {
  constexpr double longestProduct = 1 << 20; // of at most 40 factors, and beyond all numbers but those beside 1
  if (exponent == 0)
    return compared(node, x, x, train::Comparison::LessOrEqual); // 1 of every number
  if (exponent == 0.5)
    return unary<train::SqrtOp>(node, x);
  if (exponent < 0)
    return unary<train::ReciprocalOp>(node, power(node, x, -exponent));
  if (exponent >= 1 && exponent <= longestProduct && exponent == std::floor(exponent))
    return product(node, x, static_cast<int64_t>(exponent));
  return unary<train::ExpOp>(node, scaled(node, unary<train::LogOp>(node, x), exponent));
}

Value lengthOf(NodeImport &node, Value sum) {
  using Limits = std::numeric_limits<float>;
  return unary<train::SqrtOp>(node, clipped(node, sum, Limits::min(), Limits::max()));
}

Value permuted(NodeImport &node, Value x, ArrayRef<int64_t> permutation) {
  return x ? node.folded(node.make<train::TransposeOp>(x, permutation)) : x;
}

Value repeated(NodeImport &node, Value x, ArrayRef<int64_t> shape) {
  return x ? node.makeAs<train::BroadcastToOp>(shape, x, node.f32(1)) : x;
}

Value summed(NodeImport &node, Value x, ArrayRef<int64_t> kept, double factor) {
  return x ? node.makeAs<train::SumToOp>(kept, x, node.f32(factor)) : Value();
}

Value rowsOf(NodeImport &node, Value table, Value ids) {
  auto op = table && ids ? node.make<train::EmbeddingOp>(table, ids) : train::EmbeddingOp();
  return op ? op.getY() : Value();
}

std::pair<int64_t, int64_t> around(ArrayRef<int64_t> shape, int64_t axis) {
  return {llvm::product_of(shape.take_front(axis)), llvm::product_of(shape.drop_front(axis + 1))};
}

} // namespace sluice
