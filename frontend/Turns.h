// SPDX-License-Identifier: Apache-2.0
// --turn: a step for each of several turns, in one module. Which parameters a turn trains says its expression; what its
// functions compute, its losses.
#pragma once

#include "frontend/TensorRoles.h"
#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// The functions that a turn was imported as, and what attributes the module had of them.
struct ImportedTurn {
  std::string step, evaluate;
  mlir::DictionaryAttr attributes;
};

/// What the import of a pair of functions has said of their outputs and losses, which it takes from the module unless
/// it is to stay there.
mlir::DictionaryAttr takeOutputAttributes(mlir::ModuleOp module, bool leave);

/// All functions get the arguments of all, in one order: a batch has them whatever turn it is for. An error where two
/// turns compare different things with targets of one name.
Status shareArguments(mlir::ModuleOp module);

/// Lists the turns with the parameters that each trains, see ir/Buckets.h; nothing without turns. An error where a turn
/// trains none, or two train the same; a remark on what no turn trains.
Status noteTurns(mlir::ModuleOp module, const TrainingSpec &spec, const HandRoles &hand,
                 const std::vector<ImportedTurn> &imported, std::vector<std::string> &remarks);

} // namespace sluice
