// SPDX-License-Identifier: Apache-2.0
// Which SSA values of a train function are the same bytes. The planner's problem and the schedule both build on this
// one analysis, so what was planned is what is scheduled.
//
// - A view (train.reshape; train.reorder where both layouts coincide) is its operand, or, as a train.slice may be, a
//   piece of it.
// - A train.read is the variable's own slot.
// - A result with a `train.in_place` operand takes that operand's buffer, and a variable's new value that of the old
// one.
// - An argument is the batch slot of that input; what the function returns has a slot of its own that outlives the
// step.
// - What train.prefetch, encode and decode give is a new buffer; a host handle is a buffer in the arena of the offload.
#pragma once

#include "ir/Train.h"
#include "runtime/Tensor.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace sluice {

using train::identifierOf;

/// Bytes that one or more values of a function share.
struct Storage {
  enum class Kind {
    Transient, ///< device memory for some part of the step
    Home,      ///< in the arena that it was offloaded to, from the offload to the last prefetch
    Variable,  ///< slot of a train.variable, in the arena that is its home
    Batch,     ///< slot of a function argument; the program has two of them, this is the one that the step reads
    Result     ///< 0: loss, 1: count of correct samples, 2: norm of the gradients, from 3 on: losses in the sum
  };
  Kind kind = Kind::Transient;
  int64_t bytes = 0;                        ///< exact; slots are rounded up to slotAlignment
  std::string name;                         ///< identifier made from the ONNX node, unique in the function
  std::string variable;                     ///< Variable: its symbol
  unsigned index = 0;                       ///< Batch: number of the argument; Result: number of the result, see Kind
  llvm::SmallVector<mlir::Value, 2> values; ///< all values that live in it, in program order
  Space arena = Space::Device;
  mlir::Type kept = {}; ///< Transient: how it is read once the function has run, null: it is not
  bool outlivesStep() const { return kind != Kind::Transient && kind != Kind::Home; }
};

/// Smaller tensors, most of them statistics of normalizations, neither move nor are packed: what they free is less than
/// the latency costs.
constexpr int64_t smallestMoved = 4096;
/// What a slot takes of an arena.
constexpr int64_t slotBytes(int64_t bytes) { return (bytes + slotAlignment - 1) / slotAlignment * slotAlignment; }

/// The bytes of a value: all of its storage, or those from `first` on that its type takes.
struct Piece {
  int storage = 0;
  std::optional<int64_t> first = {};
};

/// Of one function, as it is now: later changes of it are not seen. Indices of storages are those of all(), in the
/// order in which values first need bytes; planner::Buffer::id and plans go by them.
class Storages {
public:
  /// `function` is a train function after fuse and linearize: without its in-place attributes more bytes are needed.
  explicit Storages(mlir::func::FuncOp function);

  llvm::ArrayRef<Storage> all() const { return storages; }
  const Storage &operator[](int index) const { return storages[index]; }
  /// Index of the value's storage.
  int of(mlir::Value value) const { return pieces.lookup(value).storage; }
  Piece pieceOf(mlir::Value value) const { return pieces.lookup(value); }
  /// Index of a variable's storage, or -1 when the function does not touch it.
  int ofVariable(llvm::StringRef symbol) const;

  /// Storages whose content the op reads: reads(op)[i] is operand i's, repetitions and views included, then of an op
  /// that accumulates its result's. For any op of the function, the terminator, too.
  llvm::SmallVector<int> reads(mlir::Operation *op) const;
  /// Storages that the op writes: writes(op)[i] is result i's, repetitions included. Of views and train.read too, which
  /// write nothing: ask isFree() first.
  llvm::SmallVector<int> writes(mlir::Operation *op) const;

private:
  int add(Storage storage);
  int addVariable(llvm::StringRef symbol, mlir::Type type);
  void visit(mlir::Operation *op);
  Piece placeResult(mlir::OpResult result);
  int addMade(mlir::OpResult result);

  mlir::func::FuncOp function;
  llvm::SmallVector<Storage> storages;
  llvm::DenseMap<mlir::Value, Piece> pieces;
  llvm::StringMap<int> variables;
};

/// What brings a variable's content for the op that reads it: the train.prefetch from its home in another arena, or the
/// train.gather_shares from all ranks. Null for other values.
mlir::Operation *arrivalOf(mlir::Value value);
/// The variable whose content comes so to the storage. Null for others.
train::VariableOp visitorOf(const Storage &storage);

/// The update at home that the storage holds the gradient of: the content goes there. Null for others.
train::UpdateOp homeUpdateOf(const Storage &storage);

/// The operand that `result` is a view of, as a whole or of a piece, or null when it is none.
mlir::Value viewSource(mlir::Value result);
/// The value that `value` is a view of, through any number of them, or `value`.
mlir::Value viewedValue(mlir::Value value);

/// Ops without a kernel: they run at no cost and at no place in the schedule (views, train.read, constants of the
/// terminator).
bool isFree(mlir::Operation *op);
/// Ops that only copy, between arenas or from the shares of all ranks, wait for that, or run at home: they have places
/// in the schedule, but no
/// positions of the planner.
bool isMove(mlir::Operation *op);
/// The ops that planner positions count, in program order.
llvm::SmallVector<mlir::Operation *> plannedOps(mlir::func::FuncOp step);

/// Whether all tensors of the function are static and have sizes that can be added up, those that no op of the dialect
/// looks at included; else an error names one. Before Storages are made of it.
mlir::LogicalResult checkTensors(mlir::func::FuncOp function);

/// checkTensors(), and whether all other ops of the train functions have kernels; else an error names one. Before plans
/// are applied.
mlir::LogicalResult checkKernels(mlir::ModuleOp module);

/// Bytes that outlive a step in an arena: the variables at home there, on the device both batch slots of every argument
/// and results of all train functions of the module, too. The planner's base; assign-slots puts them at the start.
int64_t persistentBytes(mlir::ModuleOp module, Space arena = Space::Device);

/// Bytes of the host arena from which batches are copied to the device: one slot for each input of all train functions.
int64_t stagingBytes(mlir::ModuleOp module);

} // namespace sluice
