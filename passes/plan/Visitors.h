// SPDX-License-Identifier: Apache-2.0
// Moves the copies of visitors, which home-variables put around their ops, to where a plan wants them, and repeats
// those to the device for ops that run again.
#pragma once

#include "passes/analysis/Storages.h"
#include "passes/plan/NewestValues.h"
#include "passes/plan/PlannedPlaces.h"
#include "passes/planner/Plan.h"

namespace sluice {

/// Of one function while its plan is applied; all that is given must outlive it. Builders say where copies are put;
/// `step` is the plan's number of the next op that runs (PlannedPlaces).
class Visitors {
public:
  Visitors(const Storages &storages, const planner::Plan &plan, const PlannedPlaces &places)
      : storages(storages), plan(plan), places(places) {}

  bool has(int storage) const { return !!visitorOf(storages[storage]) || !!homeUpdateOf(storages[storage]); }
  /// The copy to the device, or what gathers it from all ranks, with the handle or share that it reads.
  void arrive(mlir::OpBuilder &b, int storage, int step) const;
  /// The copy home, after what was put there before; none of what is dropped.
  void depart(mlir::OpBuilder &b, int storage) const;
  /// The wait for the copy home: the bytes may be reused from there on.
  void release(mlir::OpBuilder &b, int storage) const;

  /// Those for which nothing is planned come right before their op, after what runs again there.
  void bringForOp(mlir::OpBuilder &before, mlir::Operation *op, int step) const;
  /// Lets `clone`, an op that runs again, read the newest versions of its operands. What it reads from homes comes once
  /// more for it, and lies in the place of its workspace, in front of the workspace itself; gives the bytes there.
  int64_t readAgain(mlir::Operation *clone, NewestValues &newest, int step) const;

private:
  const Storages &storages;
  const planner::Plan &plan;
  const PlannedPlaces &places;
};

} // namespace sluice
