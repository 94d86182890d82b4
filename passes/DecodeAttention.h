// SPDX-License-Identifier: Apache-2.0
// train.attention of an evaluation as a decode step has it: one row, over keys and values that the evaluation, or
// decode steps after it, have left in caches.
#ifndef SLUICE_PASSES_DECODE_ATTENTION_H
#define SLUICE_PASSES_DECODE_ATTENTION_H

#include "passes/DecodeAxes.h"

namespace sluice {

/// Queries, keys or values as [texts, heads, tokens, columns].
struct HeadRows {
  mlir::Value value;    ///< the tensor that they are read from
  train::ViewAttr view; ///< through which; null: its elements in order
  int64_t heads = 0, columns = 0;
  TextAxes axes; ///< of the tensor
};

/// One attention, as it stands in a function.
class DecodeAttention {
public:
  /// Keys and values that several heads share are cached once. Where something does not fit, why() says what.
  DecodeAttention(train::AttentionOp attention, const TextExtents &extents);
  const std::string &why() const { return reason; }

  /// What it reads so that its result is one token, at `need`.
  NeededOperands needs(const Need &need);

  /// The types of its two caches, keys and values, with `rows` of each text.
  std::array<mlir::RankedTensorType, 2> caches(int64_t rows) const;
  /// In front of the attention, stores the keys and values of all tokens in these variables.
  void storeAll(std::array<train::VariableOp, 2> variables);
  /// The result for one token. `made` gives what was made of a needed value.
  mlir::Value build(mlir::OpBuilder &b, std::array<train::VariableOp, 2> variables, mlir::Value places,
                    llvm::function_ref<mlir::Value(const NeededValue &)> made);

private:
  void refuse(const std::string &why);
  HeadRows rowsOf(mlir::Value value, train::ViewAttr view);
  mlir::Value sharedBefore(mlir::Value value) const;
  Need needOfMask(mlir::Value mask) const;
  train::ViewAttr viewOfToken(const HeadRows &rows) const;
  mlir::Value tokenRows(mlir::OpBuilder &b, const HeadRows &rows, mlir::Value token) const;
  mlir::Value inOrder(mlir::OpBuilder &b, mlir::Value y) const;

  mutable train::AttentionOp op; ///< MLIR's accessors are not const
  const TextExtents &e;
  std::string reason;
  HeadRows q, k, v;
};

} // namespace sluice

#endif
