// SPDX-License-Identifier: Apache-2.0
// How far apart in a step the bytes are that an op touches: caches hold what was touched a moment ago.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace sluice {

/// An operand or a result of an op. `since`: how many bytes were touched since it was touched before, its own among
/// them.
struct Touch {
  double bytes = 0, since = 0;
};

/// Of a train function that is run again and again: what outlives a run was touched last in the one before. Places are
/// not known yet: memory for a result that lives while so many bytes are touched is taken to be as old, since places
/// come free at the rate at which they are taken.
class Touches {
public:
  /// `ops`: those of the function that have kernels, in order.
  Touches(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Operation *> ops);

  /// None of an op that was not among them.
  llvm::ArrayRef<Touch> of(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Touch, 4>> touches;
};

} // namespace sluice
