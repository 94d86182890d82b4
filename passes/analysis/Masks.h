// SPDX-License-Identifier: Apache-2.0
// Which activations the gradients only compare with 0: one bit an element is then all of it that the backward half
// needs.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/planner/Packings.h"

#include <optional>

namespace sluice {

/// The value that the forward ops of a train function leave in each storage; null where they leave none.
llvm::SmallVector<mlir::Value> forwardContents(mlir::func::FuncOp step, const Storages &storages);

/// Whether a mask can stand for `content`, the last forward value of its storage: every backward op that reads the
/// storage is a fused region that only asks !(content <= 0), or only content > 0 (then true), and none writes it.
std::optional<bool> maskIsPositive(mlir::Value content, const Storages &storages);

/// Whether a backward op reads the storage of `content` and asks no more than !(content <= 0), so that the mask beside
/// a packed form is enough for it.
bool readsMaskOnly(mlir::Operation *reader, mlir::Value content, const Storages &storages);

/// What backward ops compare the storage of `content` with, as the gradients of ReLU and Clip do: errors that move a
/// value across a bound, however small, change a gradient by all of itself.
Comparison comparisonOf(mlir::Value content, const Storages &storages);

} // namespace sluice
