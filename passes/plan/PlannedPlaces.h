// SPDX-License-Identifier: Apache-2.0
// The offsets of a plan, on the ops whose results and workspaces lie there: from apply-plan to schedule-streams.
#pragma once

#include "ir/Train.h"

#include "llvm/ADT/DenseMap.h"

namespace sluice {

/// Looked up while the plan is applied, as only then it is known which op makes what the plan has a place for.
class PlannedPlaces {
public:
  explicit PlannedPlaces(train::PlanAttr plan);

  /// Notes on `op` where the plan puts its results, which are the `form` of the storages of these names from `step` on,
  /// and its workspace. Steps count the plan's ops from 0, those that run again included (#train.place). What the plan
  /// does not place has no offset: views, results in place, the content of variables.
  /// The workspace begins `before` bytes after the start of its place.
  void note(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> results, train::PlaceForm form, int step,
            int64_t before = 0) const;
  /// Notes on `arrival` that its result lies `before` bytes after the start of the workspace's place of `step`: what
  /// comes from a variable's home for an op that runs again.
  void noteInWorkspace(mlir::Operation *arrival, int64_t before, int step) const;
  /// Where the plan puts result `index` of an op, or its workspace, which comes after its results; null: nowhere.
  static mlir::IntegerAttr of(mlir::Operation *op, unsigned index);
  /// A clone has the offsets of its original.
  static void forget(mlir::Operation *clone);

private:
  static void set(mlir::Operation *op, llvm::ArrayRef<int64_t> list);
  int64_t find(llvm::StringRef storage, train::PlaceForm form, int step) const;

  llvm::DenseMap<std::tuple<llvm::StringRef, train::PlaceForm, int32_t>, int64_t> offsets;
};

} // namespace sluice
