// SPDX-License-Identifier: Apache-2.0
// A function whose ops are computed for some samples of the batch after the other, wherever their samples are apart.
#pragma once

#include "passes/SampleAxes.h"

namespace sluice {

/// Parts begin at samples * i / parts. One sweep goes over the parts, each as far as it gets: to sums over all samples
/// that other ops of the parts read, as BatchNorm's statistics, where the next sweep begins. So a step without such
/// sums is one sweep, in which one part's activations live at a time.
class PartedStep {
public:
  PartedStep(mlir::func::FuncOp function, const SampleAxes &axes, int64_t samples, int64_t parts);

  /// Ops that would be computed in parts.
  int64_t partedOps() const { return static_cast<int64_t>(left.size()); }

  /// Replaces the ops of the function. Forward ops that come after a gradient count for the backward half from then on.
  void run();

private:
  using Parts = llvm::SmallVector<mlir::Value>; ///< by part; null: not made yet

  int64_t begin(int64_t part) const { return samples * part / parts; }
  int64_t count(int64_t part) const { return begin(part + 1) - begin(part); }
  bool isParted(mlir::Operation *op) const { return op && axes.ruleOf(op); }
  bool isWhole(mlir::Value value) const;
  bool waitsForReaders(mlir::Operation *op) const;
  void findOrders();

  void makeWholeOps();
  void makeWholeOp(mlir::Operation *op);
  void sweep();
  llvm::SmallVector<mlir::Operation *> available() const;
  void makePart(mlir::Operation *op, int64_t part);
  void addShare(mlir::Operation *op, mlir::Operation *made, int64_t part);
  void joinStatistics(mlir::Operation *op);
  mlir::Value scaled(mlir::Value value, int64_t part);
  mlir::Value part(mlir::Value value, unsigned axis, int64_t number);
  mlir::Value whole(mlir::Value value);
  void number(mlir::Operation *made, mlir::Operation *of, int64_t part);

  mlir::func::FuncOp function;
  const SampleAxes &axes;
  int64_t samples, parts;
  mlir::OpBuilder b;
  llvm::SetVector<mlir::Operation *> left;      ///< ops of parts, in program order
  llvm::SetVector<mlir::Operation *> wholeLeft; ///< other ops, in program order, without train.read
  /// What has to be done before an op that reads or changes a variable, by the order of the program.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> before;
  llvm::DenseMap<mlir::Value, Parts> made;                       ///< of old values
  llvm::DenseMap<mlir::Value, mlir::Value> all;                  ///< of old values, those of all samples
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> ordinals; ///< new ones, by old one and part
  int64_t forward = 0;                                           ///< forward ops so far
  bool turned = false;                                           ///< an op of the backward half was made
  mlir::Operation *current = nullptr;                            ///< old op, for which slabs and such are made
  int64_t currentPart = 0;
};

} // namespace sluice
