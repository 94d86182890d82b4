// SPDX-License-Identifier: Apache-2.0
// A function whose ops are computed for some rows after the other, samples or rows of images, wherever these are apart.
#pragma once

#include "passes/StepCuts.h"

namespace sluice {

/// One sweep goes over the parts, each as far as it gets: to sums over all rows that other ops of the parts read, as
/// BatchNorm's statistics, where the next sweep begins. So a step without such sums is one sweep, in which one part's
/// activations live at a time, and of images the last rows of the part before.
class PartedStep {
public:
  PartedStep(mlir::func::FuncOp function, const StepCuts &cuts);

  /// Ops that would be computed in parts.
  int64_t partedOps() const { return static_cast<int64_t>(left.size()); }

  /// Replaces the ops of the function. Forward ops that come after a gradient count for the backward half from then on.
  void run();

private:
  using Parts = llvm::SmallVector<mlir::Value>; ///< by part; null: not made yet

  /// Samples of the batch.
  int64_t begin(int64_t part) const { return samples * part / parts; }
  int64_t count(int64_t part) const { return begin(part + 1) - begin(part); }
  bool isParted(mlir::Operation *op) const { return op && cuts.ruleOf(op); }
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
  void tellPart(mlir::Operation *made, const PartRule &rule, int64_t part);
  float shareOf(mlir::Operation *op, int64_t part) const;
  mlir::Value read(mlir::Value value, const Slabs &slabs, int64_t part);
  mlir::Value gather(mlir::Value value, unsigned dim, Rows rows);
  mlir::Value slab(mlir::Value value, unsigned dim, Rows rows);
  mlir::Location partLoc(mlir::Value value);
  mlir::Value whole(mlir::Value value);
  mlir::Value numbered(mlir::Operation *op);
  void number(mlir::Operation *made, mlir::Operation *of, int64_t part);

  mlir::func::FuncOp function;
  const StepCuts &cuts;
  int64_t samples, parts;
  mlir::OpBuilder b;
  llvm::SetVector<mlir::Operation *> left;      ///< ops of parts, in program order
  llvm::SetVector<mlir::Operation *> wholeLeft; ///< other ops, in program order, without train.read
  /// What has to be done before an op that reads or changes a variable, by the order of the program.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> before;
  llvm::DenseMap<mlir::Value, Parts> made;      ///< of old values
  llvm::DenseMap<mlir::Value, mlir::Value> all; ///< of old values, those of all rows
  /// Of an old value that is there for all rows; and what a sweep gathered of several parts, which the next one makes
  /// again, as it would live that long.
  llvm::DenseMap<std::tuple<mlir::Value, int64_t, int64_t>, mlir::Value> slabs, gathered;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> ordinals; ///< new ones, by old one and part
  int64_t forward = 0;                                           ///< forward ops so far
  bool turned = false;                                           ///< an op of the backward half was made
  mlir::Operation *current = nullptr;                            ///< old op, for which slabs and such are made
  int64_t currentPart = 0;
};

} // namespace sluice
