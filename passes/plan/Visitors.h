// SPDX-License-Identifier: Apache-2.0
// Moves the copies of visitors, which home-variables put around their ops, to where a plan wants them.
#pragma once

#include "passes/analysis/Storages.h"

namespace sluice {

/// Puts the copy to the device at the builder's place, where it is issued. `visitor`: a storage that visitorOf() knows.
train::PrefetchOp moveArrival(mlir::OpBuilder &b, const Storage &visitor);

/// Puts the copy home at the builder's place, behind what was put there before.
void moveDeparture(mlir::OpBuilder &b, const Storage &visitor);

/// Puts the wait for the copy home at the builder's place: the bytes may be reused from there on.
void moveAwait(mlir::OpBuilder &b, const Storage &visitor);

} // namespace sluice
