// SPDX-License-Identifier: Apache-2.0
// What the files of rules share: each holds, for a family of ops, result types and verifiers, gradients, calls of
// kernels, and where the defaults are wrong cost, precision and layout. A forward op verifies only if the inference of
// its type succeeds. A gradient op that mirrors a forward op is checked by that op's inference, run on the gradient's
// types.
#pragma once

#include "ir/KernelCall.h"

namespace sluice::train {

using Types = llvm::SmallVectorImpl<mlir::Type>;
using Calls = llvm::SmallVector<sched::CallAttr>;
using MaybeLoc = std::optional<mlir::Location>;

/// An error at `loc`, if there is one, put together from `parts`.
template <typename... Parts> mlir::LogicalResult fail(MaybeLoc loc, Parts &&...parts) {
  if (!loc)
    return mlir::failure();
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(*loc);
  (diagnostic << ... << parts);
  return mlir::failure();
}

inline mlir::RankedTensorType ranked(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
inline llvm::ArrayRef<int64_t> extents(mlir::Value value) { return ranked(value).getShape(); }
/// `shape` with the elements of `type`, and its encoding where both have one rank.
mlir::RankedTensorType like(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> shape);
/// `count` numbers above 0, or not below.
bool positive(llvm::ArrayRef<int64_t> list, size_t count);
bool nonNegative(llvm::ArrayRef<int64_t> list, size_t count);
/// The product of numbers that are not negative, or the largest number.
int64_t saturatedProduct(llvm::ArrayRef<int64_t> factors);
/// Output extent of a sliding window, or -1 when no window fits.
int64_t windowExtent(int64_t in, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation,
                     bool ceil = false);

/// C1 of ops whose full tensors have one shape.
mlir::LogicalResult sameShapes(mlir::Operation *op, mlir::ValueRange values);

/// C1 of ops that mirror a forward op: `Forward` with `properties` maps `operands` to results of `wanted`'s shapes.
/// `silent` says nothing.
template <typename Forward>
mlir::LogicalResult mirrors(mlir::Operation *op, mlir::ValueRange operands,
                            const typename Forward::Properties &properties, mlir::ValueRange wanted,
                            bool silent = false) {
  llvm::SmallVector<mlir::Type> types;
  typename Forward::Adaptor forward(operands, mlir::DictionaryAttr::get(op->getContext()), properties);
  if (failed(Forward::inferReturnTypes(op->getContext(), silent ? std::nullopt : std::optional(op->getLoc()), forward,
                                       types)))
    return mlir::failure();
  for (auto [type, value] : llvm::zip(types, wanted))
    if (mlir::cast<mlir::RankedTensorType>(type).getShape() != extents(value)) // C1
      return silent ? mlir::failure()
                    : op->emitOpError() << "is no gradient of '" << Forward::getOperationName() << "', which gives "
                                        << type << ", not " << value.getType();
  return mlir::success();
}

/// A view as AttentionViews has it; empty for none.
Shape listOf(ViewAttr view);

/// Whether each of `values` is a variable with this role.
mlir::LogicalResult checkRoles(mlir::Operation *op, mlir::SymbolTableCollection &table, mlir::ValueRange values,
                               Role role);

} // namespace sluice::train

/// Result types of a forward op `op`, or an error at `loc`. They keep the encoding of the first operand where the
/// result is a tensor of the same kind.
#define INFER(Op)                                                                                                      \
  bool Op::isCompatibleReturnTypes(TypeRange a, TypeRange b) { return compatibleTypes(a, b); }                         \
  LogicalResult Op::inferReturnTypes([[maybe_unused]] MLIRContext *context, [[maybe_unused]] MaybeLoc loc,             \
                                     Op::Adaptor op, Types &types)

#define GRADIENT(Op) LogicalResult Op::buildGradients(OpBuilder &b, Gradients &gradients)
/// For ops with one differentiable operand x: the gradient op `Expression` of dy.
#define SINGLE(Op, Expression)                                                                                         \
  GRADIENT(Op) {                                                                                                       \
    Value dy = gradients.of(getY());                                                                                   \
    if (dy && gradients.wanted(getX()))                                                                                \
      gradients.add(b, getLoc(), getX(), Expression);                                                                  \
    return success();                                                                                                  \
  }

#define KERNEL(Op) sluice::train::Calls Op::kernelCalls()
