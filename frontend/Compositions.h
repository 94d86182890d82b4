// SPDX-License-Identifier: Apache-2.0
// Single ops as functions of values, for importers that are compositions. Null operands, of which the node has the
// error, give null.
#ifndef SLUICE_FRONTEND_COMPOSITIONS_H
#define SLUICE_FRONTEND_COMPOSITIONS_H

#include "frontend/TallTensors.h"

namespace sluice {

template <typename Op> mlir::Value unary(NodeImport &node, mlir::Value x) {
  auto op = x ? node.make<Op>(x) : Op();
  return op ? op.getY() : mlir::Value();
}

/// By numpy's broadcasting; `attributes` are the op's.
template <typename Op, typename... Attributes>
mlir::Value binary(NodeImport &node, mlir::Value a, mlir::Value b, Attributes... attributes) {
  if (!a || !b)
    return {};
  int64_t rank = std::max(typeOf(a).getRank(), typeOf(b).getRank());
  if (isTall(node, rank)) {
    auto merged = mergeOperands(node, a, b);
    return merged ? viewed(node, binary<Op>(node, merged->a, merged->b, attributes...), merged->shape) : mlir::Value();
  }
  mlir::Value x = node.asImageOperand(a, rank), y = node.asImageOperand(b, rank);
  auto op = x && y ? node.make<Op>(x, y, attributes...) : Op();
  return op ? op.getY() : mlir::Value();
}

/// 1 where the predicate holds, else 0.
mlir::Value compared(NodeImport &node, mlir::Value a, mlir::Value b, train::Comparison predicate);
/// a where the condition is above 0, else b.
mlir::Value selected(NodeImport &node, mlir::Value condition, mlir::Value a, mlir::Value b);
/// factor * x
mlir::Value scaled(NodeImport &node, mlir::Value x, double factor);
/// The whole number beside x, which no gradient passes.
mlir::Value rounded(NodeImport &node, mlir::Value x, train::Rounding rounding);
/// x limited to [low, high]
mlir::Value clipped(NodeImport &node, mlir::Value x, double low, double high);
/// x^exponent: a product for whole exponents up to 2^20, else by the logarithm of x, which must be positive.
mlir::Value power(NodeImport &node, mlir::Value x, double exponent);
/// Length of a vector with this sum of squares. A sum of 0 counts as the smallest normal number: the gradient is 0
/// there, that of a square root would be infinite.
mlir::Value lengthOf(NodeImport &node, mlir::Value sum);
/// Dimension i of the result is dimension permutation[i] of x.
mlir::Value permuted(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> permutation);
/// The slab [start, start + length) of x along `axis`.
mlir::Value slab(NodeImport &node, mlir::Value x, int64_t axis, int64_t start, int64_t length);
/// Tensors one after the other along `axis`; one alone as it is, null after an error in any.
mlir::Value joined(NodeImport &node, llvm::ArrayRef<mlir::Value> parts, int64_t axis);
/// x repeated to a shape by numpy's rules.
mlir::Value repeated(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> shape);
/// factor times the sums of x over the dimensions in which `kept` has extent 1.
mlir::Value summed(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> kept, double factor = 1);
/// The rows of a table [rows, ...] that ids name.
mlir::Value rowsOf(NodeImport &node, mlir::Value table, mlir::Value ids);
/// The result of a node that takes the elements of x along `axis` by the indices of its input 1, which are data.
mlir::LogicalResult gatherByData(NodeImport &node, mlir::Value x, int64_t axis);
/// Extents before and after a dimension, multiplied.
std::pair<int64_t, int64_t> around(llvm::ArrayRef<int64_t> shape, int64_t axis);

} // namespace sluice

#endif
