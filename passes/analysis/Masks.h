// SPDX-License-Identifier: Apache-2.0
// Which activations the gradients only compare with 0: one bit an element is then all of it that the backward half
// needs.
#pragma once

#include "passes/analysis/Storages.h"

#include <optional>

namespace sluice {

/// The value that the forward ops of a train function leave in each storage; null where they leave none.
llvm::SmallVector<mlir::Value> forwardContents(mlir::func::FuncOp step, const Storages &storages);

/// Whether a mask can stand for `content`, the last forward value of its storage: every backward op that reads the
/// storage is a fused region that only asks !(content <= 0), or only content > 0 (then true), and none writes it.
std::optional<bool> maskIsPositive(mlir::Value content, const Storages &storages);

/// Whether a backward op compares the storage of `content` with a bound, as the gradients of ReLU and Clip do: errors
/// that move a value across it, however small, change a gradient by all of itself.
bool boundsAreRead(mlir::Value content, const Storages &storages);

} // namespace sluice
