// SPDX-License-Identifier: Apache-2.0
// Updates where parameter and states are at home: instead of these coming to the device and going back, the gradient
// goes home, and threads of the host change them there. Of AdamW 24 bytes an element travel for an update, of this 4.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/planner/Profile.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace sluice {

/// Of one function, before its variables are brought from their homes.
class HomeUpdates {
public:
  /// `isAtHome`: whether a variable is at home in host memory.
  HomeUpdates(mlir::func::FuncOp function, const planner::Profile &profile,
              llvm::function_ref<bool(llvm::StringRef)> isAtHome);

  /// Lets the update run at home, if all that it changes is there and its gradient can go there; else leaves it as it
  /// is. The gradient leaves after the last op that touches it, and compute waits there for its copy: apply-plan moves
  /// the wait to where there is room. At most twice the bytes of the largest gradient are there at once, as compute
  /// waits for earlier updates.
  bool take(train::UpdateOp update);
  /// Whether times of some of them are by planner::assumedHostBandwidth.
  bool assumes() const { return assumed; }

private:
  bool mayRun(train::UpdateOp update) const;
  bool mayLeave(mlir::Value gradient) const;
  mlir::Operation *lastOn(int storage, mlir::Operation *except) const;
  mlir::Value sendNorm(mlir::Value norm);
  void estimate(train::UpdateOp update);
  void limitUnderway(train::UpdateOp update, int64_t bytes);

  const planner::Profile &profile;
  const llvm::function_ref<bool(llvm::StringRef)> isAtHome;
  const Storages storages;                                            ///< of the function as it was
  llvm::DenseMap<int, mlir::SmallVector<mlir::Operation *>> touching; ///< by storage, in program order
  llvm::DenseMap<int, mlir::Value> written;                           ///< by storage: what was written last
  llvm::DenseSet<int> sent;
  llvm::DenseMap<mlir::Value, mlir::Value> norms; ///< by norm: its handle
  std::deque<std::pair<train::UpdateOp, int64_t>> underway;
  int64_t bytesUnderway = 0, largest = 0;
  bool assumed = false;
};

} // namespace sluice
