// SPDX-License-Identifier: Apache-2.0
// Evaluations and predictions read averages, steps the parameters themselves.
#include "passes/AveragedReads.h"

using namespace mlir;
using namespace sluice::train;

void sluice::readAverages(ModuleOp module, ArrayRef<func::FuncOp> steps) {
  llvm::DenseMap<StringAttr, FlatSymbolRefAttr> averages;
  for (func::FuncOp step : steps)
    for (auto update : step.getOps<UpdateOp>())
      averages[variableOf(update.getParameter()).getAttr()] = variableOf(update.getStates().back());
  for (auto function : module.getOps<func::FuncOp>())
    for (auto read : function.getOps<ReadOp>())
      if (auto average = averages.lookup(read.getVariableAttr().getAttr());
          average && !llvm::is_contained(steps, function))
        read.setVariableAttr(average);
}
