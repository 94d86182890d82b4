// SPDX-License-Identifier: Apache-2.0
// What a decode step needs of each value of an evaluation, from its scores back.
#ifndef SLUICE_PASSES_DECODE_ANALYSIS_H
#define SLUICE_PASSES_DECODE_ANALYSIS_H

#include "passes/DecodeAttention.h"

#include "llvm/ADT/MapVector.h"

#include <memory>

namespace sluice {

/// Scores [texts, tokens, words] that an evaluation returns, the first ones.
struct DecodedScores {
  mlir::Value value;
  int64_t output = 0; ///< among outputsOf()
};
std::optional<DecodedScores> decodedScores(mlir::ModuleOp module, mlir::func::FuncOp evaluate);

/// Extents of an evaluation with these scores, and what of it depends on its texts: inputs [texts, tokens], and all
/// that is made of them.
TextExtents textExtents(mlir::func::FuncOp evaluate, mlir::Value scores);

class DecodeAnalysis {
public:
  DecodeAnalysis(mlir::func::FuncOp evaluate, mlir::Value scores)
      : evaluate(evaluate), scores(scores), extents(textExtents(evaluate, scores)) {}

  /// False where there is no such step; `culprit` is what `why` is about then.
  bool run();

  mutable mlir::func::FuncOp evaluate;
  const mlir::Value scores;
  const TextExtents extents;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Need, 2>> needs;
  llvm::MapVector<mlir::Operation *, std::unique_ptr<DecodeAttention>> attentions; ///< the last one first
  mlir::Operation *culprit = nullptr;
  std::string why;

private:
  bool refuse(mlir::Operation *op, const std::string &reason);
  bool add(const NeededValue &needed, mlir::Operation *reader);
  bool areRows(mlir::Value value) const;
  bool visit(mlir::Operation *op);
  bool visit(mlir::BlockArgument argument);
  NeededOperands operandsOf(mlir::Operation *op, const Need &need);
};

} // namespace sluice

#endif
