// SPDX-License-Identifier: Apache-2.0
// What fuse does where regions may take means of their rows and sum over them. Gradients of transformers are matrices
// of rows that stand as [batch, tokens, columns] in between, and a kernel that holds whole rows makes LayerNorm's
// gradient, those of its parameters and of biases while it has the elements anyway.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Before regions sink, where each is one elementwise op: train.layer_norm_backward becomes a region, regions of
/// gradients whose neighbours are matrices become matrices, and train.sum_to over the rows of what a region makes
/// becomes a region behind that one.
void makeRowRegions(mlir::func::FuncOp function);

/// Afterwards: a region that takes means of rows joins the sums of LayerNorm's parameters, which read the same tensors.
/// Gives back how many did.
int joinRowSums(mlir::func::FuncOp function);

} // namespace sluice
