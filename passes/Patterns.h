// SPDX-License-Identifier: Apache-2.0
// What recompose's patterns are made of: constants of the module, values without the factors that they carry, ops that
// alone read a value.
#ifndef SLUICE_PASSES_PATTERNS_H
#define SLUICE_PASSES_PATTERNS_H

#include "ir/Train.h"

#include <optional>

namespace sluice {

/// Of one module. Constants are looked up by symbol, so that none may be renamed while this lives.
class Patterns {
public:
  explicit Patterns(mlir::ModuleOp module) : symbols(module) {}

  /// The value of a constant of float32 that the module holds, after reshapes too; null for any other value.
  mlir::DenseFPElementsAttr constantOf(mlir::Value value) const;
  /// The number that a tensor holds everywhere, if it is a constant of one element.
  std::optional<double> number(mlir::Value value) const;
  /// value = factor * (what is returned); another value as it is, with factor 1.
  mlir::Value unscaled(mlir::Value value, double &factor) const;
  /// Whether no parameter takes part in the value. Looks at so many ops at most, and says no where there are more.
  bool hasNoParameters(mlir::Value value, int ops = 256) const;

  /// The only op that reads the value, if it is an Op.
  template <typename Op> static Op onlyReader(mlir::Value value) {
    return value.hasOneUse() ? llvm::dyn_cast<Op>(*value.user_begin()) : Op();
  }
  /// What the op adds to each row of `rows` alike, a number for each column; null for another op. `rows` is an operand
  /// of it.
  static mlir::Value addedRow(mlir::Operation *op, mlir::Value rows);
  /// The same elements in another shape: the value itself where it has that.
  static mlir::Value reshaped(mlir::OpBuilder &b, mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// Erases the op and what only it read.
  static void eraseUnused(mlir::Operation *op);
  /// Decimals of the constants differ from export to export.
  static bool isAbout(std::optional<double> number, double wanted);

private:
  mlir::SymbolTable symbols;
};

/// Puts a train.attention in place of softmax, mask, dropout and the two products around it; how many were made.
int recomposeAttention(mlir::ModuleOp module, const Patterns &patterns);

/// Removes pairs of transposes, or a transpose and attention's own order, between which every op works row by row;
/// returns how many it rewrote.
int keepRowOrder(mlir::ModuleOp module);

/// Takes batch and heads of attention of rank 3 apart where a reshape joined them.
void unfoldHeads(mlir::ModuleOp module);

/// Lets train.attention read and write through the reshapes, transposes and slices around it; how many do.
int readAttentionInPlace(mlir::ModuleOp module);

/// Puts a train.gelu in place of the ops around an erf or a tanh; whether it did.
bool recomposeGelu(mlir::Operation *odd, const Patterns &patterns);

/// Puts a train.layer_norm in place of the ops that give mean, variance and what they are for; how many were made.
int recomposeLayerNorms(mlir::ModuleOp module, const Patterns &patterns);

} // namespace sluice

#endif
