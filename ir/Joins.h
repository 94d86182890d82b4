// SPDX-License-Identifier: Apache-2.0
// Joins of many tensors of which earlier joins have the first ones, as every layer of a DenseNet joins all before it.
#pragma once

#include "ir/Train.h"

namespace sluice::train {

/// Of the joins that stand before `join` and along its dimension that of most of its first tensors, though not of all;
/// null: none.
ConcatOp beginningOf(ConcatOp join);

} // namespace sluice::train
