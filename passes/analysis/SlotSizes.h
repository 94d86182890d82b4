// SPDX-License-Identifier: Apache-2.0
// The size of every slot of a program against the tensors that are used in it.
#pragma once

#include "ir/Sched.h"

#include "mlir/IR/SymbolTable.h"

namespace sluice {

/// Whether every buffer has exactly the bytes of the tensors that it is used as, and of its variable, and what is
/// copied as it is has one size on both sides; else an error that begins with V6. A packed form may also be read as the
/// mask that it begins with, of the tensor that was packed.
mlir::LogicalResult checkSizes(const mlir::SymbolTable &symbols, sched::ProgramOp program);

} // namespace sluice
