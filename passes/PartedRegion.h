// SPDX-License-Identifier: Apache-2.0
// A row region in parts, each of which is made, forward and backward, before the next one.
#pragma once

#include "passes/RowRegion.h"

#include "mlir/IR/IRMapping.h"

namespace sluice {

/// Parts begin at rows * i / parts, so that their sizes differ by one row at most.
class PartedRegion {
public:
  PartedRegion(const RowRegion &region, int64_t parts);

  /// Why the parts cannot stand in the region's place; empty: they can.
  std::string obstacle() const;

  /// Puts the parts in the region's place and erases its ops. There is no obstacle, and nothing else reads its forward
  /// values.
  void run();

private:
  using Values = llvm::MapVector<mlir::Value, mlir::Value>;

  mlir::Operation *place() const {
    mlir::Operation *loss = region.loss;
    return region.gradient ? region.gradient : loss;
  }
  bool isOutside(mlir::Value value) const;
  bool mayMove(mlir::Value operand) const;
  void move(mlir::Value operand);
  void prepare(mlir::Operation *op);
  mlir::Value wholeRows(mlir::Value value);
  void makePart(int64_t part);
  void makeOp(mlir::Operation *op, mlir::IRMapping &map);
  mlir::Value makeSum(mlir::Operation *op, mlir::Operation *made);
  mlir::Type partType(mlir::Operation *op) const;
  void note(mlir::Operation *made, mlir::Operation *of);
  mlir::Value reshaped(mlir::Value value, mlir::Type type, mlir::Operation *of);
  void replace();

  const RowRegion &region;
  int64_t parts;
  mlir::OpBuilder b;
  mlir::Location loc;                             ///< of the part at hand
  int64_t begin = 0, count = 0;                   ///< its rows
  llvm::SmallVector<mlir::Operation *> ops;       ///< of the region, in an order in which they can run
  llvm::SetVector<mlir::Operation *> lossReaders; ///< that come before the gradient, with what reads them
  mlir::IRMapping same;                           ///< operands that all parts have in common
  llvm::SmallVector<mlir::Operation *> moved;     ///< in front of the parts, which read them
  Values whole;                                   ///< operands of which parts read rows, as [rows, ..]
  Values sums;                                    ///< results that are sums, of the parts made so far
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>> joined; ///< rows that others read, of these parts
};

} // namespace sluice
