// SPDX-License-Identifier: Apache-2.0
// Which products train.matmul_gelu and its gradient are for.
#pragma once

#include "ir/Train.h"

namespace sluice::train {

/// C2 of train.matmul_gelu: matrices with no extent of one whose rows are whole multiples of 16 bytes once they are
/// halves, as cuBLASLt's epilogues of Gelu ask.
bool hasWholeRows(llvm::ArrayRef<mlir::Type> matrices);

} // namespace sluice::train
