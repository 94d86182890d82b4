// SPDX-License-Identifier: Apache-2.0
// What stands between the product of queries and keys and a softmax: factors, numbers that are added to scores, numbers
// that are put in their place.
#ifndef SLUICE_PASSES_ATTENTIONSCORES_H
#define SLUICE_PASSES_ATTENTIONSCORES_H

#include "passes/Patterns.h"

namespace sluice {

/// Ops that a pass makes, each once: one that is equal to an earlier one of the same block gives that one's result.
class OpsMadeOnce {
public:
  template <typename Op, typename... Arguments>
  mlir::Value make(mlir::OpBuilder &b, mlir::Location loc, Arguments &&...arguments) {
    return keepOne(Op::create(b, loc, std::forward<Arguments>(arguments)...));
  }

private:
  mlir::Value keepOne(mlir::Operation *op);
  llvm::SmallVector<mlir::Operation *> made;
};

/// What train.attention makes of it.
struct AttentionScores {
  double factor = 1;       ///< of q k^T
  bool causal = false;     ///< row i sees keys 0 to i alone
  mlir::Value added, kept; ///< null for none; `kept` is of truth values, see train.attention
};

/// The ops between one softmax and the product of queries and keys, as find() met them. They are read by nobody else,
/// so that all of them go once train.attention stands for them.
class ScoreChain {
public:
  ScoreChain(const Patterns &patterns, mlir::RankedTensorType scores) : patterns(patterns), scores(scores) {}

  /// From the softmax's operand up to the product. False where there is something else, or somebody else reads what
  /// lies between.
  bool find(mlir::Value value);
  /// Of what was found.
  train::MatmulOp product() const { return first; }
  /// Makes the ops of masks at `b`, which stands after the chain.
  AttentionScores make(mlir::OpBuilder &b, OpsMadeOnce &once) const;

private:
  /// One step from the product to the softmax: score * factor, score + or - number, or number where a condition does
  /// not keep the score.
  struct Link {
    double factor = 1;
    mlir::Value number = {}, condition = {};
    bool keepsWhereTrue = true, subtracts = false;
    bool causal = false; ///< hides what lies above the diagonal, and nothing else has to be known of it
  };

  bool leadsToProduct(mlir::Value value, int depth = 4) const;
  bool isMask(mlir::Value value) const;
  bool addLink(mlir::Operation *op, mlir::Value &value);
  /// The largest number above the diagonal, where the link hides just that, of all members alike.
  std::optional<double> triangleOf(const Link &link) const;
  double shiftOf(const Link &link) const;
  bool markCausal();
  void replace(mlir::OpBuilder &b, OpsMadeOnce &once, const Link &link, AttentionScores &made) const;

  const Patterns &patterns;
  mlir::RankedTensorType scores;
  train::MatmulOp first;
  llvm::SmallVector<Link> links; ///< from the softmax up
};

} // namespace sluice

#endif
