// SPDX-License-Identifier: Apache-2.0
// Where tokens and texts stand in the tensors of a model that reads [batch, tokens], and what an op asks of its
// operands to compute one token of each text.
#ifndef SLUICE_PASSES_DECODE_AXES_H
#define SLUICE_PASSES_DECODE_AXES_H

#include "ir/Train.h"

#include <optional>

namespace sluice {

/// Tokens, or texts, within a dimension whose extent is outer * their number * inner: reshapes join dimensions.
struct TensorAxis {
  size_t dim = 0;
  int64_t outer = 1, inner = 1;
  bool operator==(const TensorAxis &o) const { return dim == o.dim && outer == o.outer && inner == o.inner; }
  bool isWhole() const { return outer == 1 && inner == 1; } ///< the dimension is nothing else
};

/// The axis of so many elements that stand `step` elements of a row-major tensor apart; none where no single dimension
/// has it. Of one element it is wherever somebody looks.
std::optional<TensorAxis> axisOf(llvm::ArrayRef<int64_t> shape, int64_t step, int64_t count);
/// How far its elements are apart.
int64_t stepOf(llvm::ArrayRef<int64_t> shape, const TensorAxis &axis);
/// The shape with one element along the axis.
llvm::SmallVector<int64_t> shapeAt(llvm::ArrayRef<int64_t> shape, const TensorAxis &axis);

struct TextAxes {
  TensorAxis tokens, texts;
  bool operator==(const TextAxes &o) const { return tokens == o.tokens && texts == o.texts; }
};

/// What a decode step needs of a value of the evaluation. Token: of a value that depends on the texts, what it is for
/// their one token, at `axes`. Whole: all of it, for all places. Row: of one that does not depend on them, made `rank`
/// dimensions by ones in front, the rows along `dim` at the texts' places, with a first dimension of texts.
struct Need {
  enum Kind { Token, Whole, Row } kind = Whole;
  TextAxes axes = {};
  size_t dim = 0, rank = 0;
  bool operator==(const Need &o) const {
    return kind == o.kind && (kind != Token || axes == o.axes) && (kind != Row || (dim == o.dim && rank == o.rank));
  }
};
struct NeededValue {
  mlir::Value value;
  Need need;
};

/// Extents that the analysis counts by, and what depends on the texts.
struct TextExtents {
  int64_t texts = 1, tokens = 1;
  llvm::DenseSet<mlir::Value> dependent;
};

/// What `op` reads so that its first result is what `need` says, in the order of its operands where it is cloned for
/// that, or why it cannot be told. train.attention is for AttentionNeeds.
struct NeededOperands {
  llvm::SmallVector<NeededValue> values;
  std::string why; ///< not empty: there is no such step
};
NeededOperands neededOperands(mlir::Operation *op, const Need &need, const TextExtents &extents);

/// Whether rows of the op's result are made of those of its operands; else they are taken of the whole result.
bool passesRows(mlir::Operation *op, const Need &need, const TextExtents &extents);

} // namespace sluice

#endif
