// SPDX-License-Identifier: Apache-2.0
// Which storages of @step can be rebuilt instead of kept, by which op undone, and what that takes. The planner's
// problem and apply-plan both ask here.
#pragma once

#include "passes/analysis/Storages.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {

/// How the final forward content of a storage comes back.
struct StorageInversion {
  train::Invertible op; ///< undone, gives back `operand`
  unsigned operand = 0;
  /// Forward ops that run again into memory of their own, in order: they recompute what `op` read and the forward half
  /// overwrote, or would keep for this alone.
  llvm::SmallVector<mlir::Operation *> reruns;
  /// Transient storages whose final forward content is read, that of `op`'s first result in front. If `op` saves
  /// channels, its other operands are not listed, because they stay on the device.
  llvm::SmallVector<int> sources;
  /// Position of the first planned op that changes a parameter that is read; a large number when none does.
  int latest = 0;
  /// Bytes besides sources and content while `reruns` and the undoing run.
  int64_t workspace = 0;
  /// Whether the content can take the bytes of what the last of `reruns` made: nothing else reads them.
  bool inPlace = false;
};

/// By storage. An op that saves channels is never undone from a storage that is rebuilt itself, and what it gives back
/// is never a source of another: errors would add up, and the slope of a leaky ReLU multiplies them. Sums may be undone
/// one from the next: docs/actions.md says what that costs.
llvm::MapVector<int, StorageInversion> invertedStorages(mlir::func::FuncOp step, const Storages &storages);

} // namespace sluice
