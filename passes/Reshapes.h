// SPDX-License-Identifier: Apache-2.0
// Values behind reshapes, for passes that work before storages are known (passes/analysis/Storages.h knows all views).
#pragma once

#include "ir/Train.h"

namespace sluice {

/// What the value is a reshape of, through any number of them, or the value.
inline mlir::Value withoutReshapes(mlir::Value value) {
  while (auto view = value.getDefiningOp<train::ReshapeOp>())
    value = view.getX();
  return value;
}

} // namespace sluice
