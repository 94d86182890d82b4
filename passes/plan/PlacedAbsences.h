// SPDX-License-Identifier: Apache-2.0
// The absences of a plan by the positions at which something has to be done for them, for apply-plan.
#pragma once

#include "passes/analysis/InvertedStorages.h"
#include "passes/planner/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace sluice {

/// Of one function and one plan, by storages. Checks what only the step can say, and sorts what is to be done.
class PlacedAbsences {
public:
  /// Storages, by position k of the plan; what stands between two ops comes in the order in which it is listed here.
  using Lists = llvm::DenseMap<int, llvm::SmallVector<int>>;
  Lists departures; ///< after op k: its content is complete and copied out, packed, or saved for an inversion
  Lists releases;   ///< before op k, or at the end: its bytes may be reused from there on
  Lists returns;    ///< after op k, and so after the releases of op k + 1: it is copied back, or unpacked
  Lists rebuilds;   ///< before op k: an inversion computes it
  Lists masks;      ///< before op k: only its mask is read from there on

  /// `contents`: by storage, what the forward half leaves in it. All must outlive this.
  PlacedAbsences(mlir::func::FuncOp step, const planner::Plan &plan, const Storages &storages,
                 llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> contents,
                 const llvm::MapVector<int, StorageInversion> &inverters)
      : step(step), plan(plan), storages(storages), ops(ops), contents(contents), inverters(inverters) {}

  /// Fills the lists, in the order in which Simulate.h serves copies. Refuses, with an error at the step, actions and
  /// codecs that generated programs do not execute, content that is not written yet, and positions after the last op.
  mlir::LogicalResult place();

private:
  mlir::InFlightDiagnostic refuse(int s, const planner::Decision &d);
  mlir::LogicalResult check(int s, const planner::Decision &d, const planner::Absence &away);
  mlir::LogicalResult checkBetween(int s, const planner::Decision &d, const planner::Absence &away);
  mlir::LogicalResult checkVisit(int s, const planner::Decision &d);
  void add(int s, const planner::Decision &d);
  int writtenBefore(int s, int position) const;
  bool touches(mlir::Operation *op, int s) const;
  int afterValues(int s, const planner::Absence &away) const;
  bool executable(int s, const planner::Decision &d, const planner::Absence &away) const;
  bool sourcesSuffice(int s) const;

  mlir::func::FuncOp step;
  const planner::Plan &plan;
  const Storages &storages;
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::ArrayRef<mlir::Value> contents;
  const llvm::MapVector<int, StorageInversion> &inverters;
};

} // namespace sluice
