// SPDX-License-Identifier: Apache-2.0
// Gelu by tanh in the epilogues of matrix products, for fuse-epilogues.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Products that make the gradient of a train.gelu become train.matmul_gelu_backward, with the sum of its rows where
/// `sums`; how many.
int fuseGeluGradients(mlir::func::FuncOp function, bool sums);

/// After that: products whose result train.gelu and such a gradient read become train.matmul_gelu; how many.
int fuseGelus(mlir::func::FuncOp function);

} // namespace sluice
