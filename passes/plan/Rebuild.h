// SPDX-License-Identifier: Apache-2.0
// The ops that rebuild the content of a storage which a plan inverts, for apply-plan.
#pragma once

#include "passes/analysis/InvertedStorages.h"
#include "passes/plan/NewestValues.h"

namespace sluice {

/// What rebuild() made.
struct Rebuilt {
  mlir::Value result;
  mlir::Value first; ///< of the bytes that the result lies in: what runs again, or the result itself
};

/// Builds, at the builder's place, the clones that run again and the op that undoes `inversion.op`. `saved` is what
/// that op saved, null: nothing. What runs again is of no use to anybody else: it does not become the newest version.
Rebuilt rebuild(mlir::OpBuilder &b, const StorageInversion &inversion, mlir::Value saved, bool fromHalves,
                NewestValues &newest);

} // namespace sluice
