// SPDX-License-Identifier: Apache-2.0
// Where samples stand in what attention, or its gradient, reads and writes.
#pragma once

#include "ir/Train.h"

#include <optional>

namespace sluice {

/// The dimension of a value in which the samples are the outermost; none: it does not have them.
using AxisOf = llvm::function_ref<std::optional<unsigned>(mlir::Value)>;

struct AttentionAxes {
  llvm::SmallVector<std::pair<unsigned, unsigned>> operands; ///< operands that have the samples, and where
  llvm::SmallVector<std::optional<unsigned>> results;        ///< where each result has them
  unsigned factors = 0;                                      ///< where q, k and v have them as they are read
  bool draws = false;                                        ///< probabilities are dropped by their place in the whole
};

/// Of a train.attention or train.attention_backward that computes each of `samples` samples alone: they are in one of
/// the leading dimensions of all factors. Nothing for others.
std::optional<AttentionAxes> attentionAxes(mlir::Operation *op, int64_t samples, AxisOf axisOf);

} // namespace sluice
