// SPDX-License-Identifier: Apache-2.0
// The buffers of a sched.program, made of the storages of the function that is scheduled.
#pragma once

#include "ir/Sched.h"
#include "passes/analysis/Storages.h"

namespace sluice {

/// The buffers of one program. Lives and, where the plan has none, offsets are assign-slots' to fill in.
class ScheduledBuffers {
public:
  /// Appends one sched.buffer for every storage, three for an input, and one for every workspace, at the offsets that
  /// the plan has. `storages` must outlive this.
  ScheduledBuffers(mlir::OpBuilder &b, mlir::func::FuncOp function, const Storages &storages);

  /// The buffer of a storage; of an input, the slot of the batch that the step reads.
  mlir::Value of(int storage) const { return slots[storage]; }
  /// Null for an op that needs none.
  mlir::Value scratchOf(mlir::Operation *op) const { return scratches.lookup(op); }
  /// Staging slot and the device slot that the next batch arrives in, of each input.
  llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> nextBatch() const { return arriving; }

  /// What sched.run lists of these values: buffers, types, and where pieces begin (wholeBuffer: no piece).
  struct Operands {
    llvm::SmallVector<mlir::Value> buffers;
    llvm::SmallVector<mlir::Attribute> types;
    llvm::SmallVector<int64_t> firsts;
  };
  /// Of an op's operands, with its result behind them where it accumulates into that, and of its results.
  Operands insOf(mlir::Operation *op) const;
  Operands outsOf(mlir::Operation *op) const;

private:
  void list(mlir::Value value, std::optional<train::VariablePiece> changed, Operands &into) const;
  void addStorage(mlir::OpBuilder &b, mlir::func::FuncOp function, const Storage &storage);
  void addScratch(mlir::OpBuilder &b, mlir::Operation *op);

  const Storages &storages;
  llvm::SmallVector<mlir::Value> slots;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> arriving;
  llvm::DenseMap<mlir::Operation *, mlir::Value> scratches;
};

/// What computed the storage's tensor, for reports; `fallback` where nothing says.
mlir::Location originOf(const Storage &storage, mlir::Location fallback);
/// The arena that the tensor leaves for.
sched::Space spaceOf(train::OffloadOp op);

} // namespace sluice
