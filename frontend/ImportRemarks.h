// SPDX-License-Identifier: Apache-2.0
// What an imported model computes that its author may not have meant.
#ifndef SLUICE_FRONTEND_IMPORT_REMARKS_H
#define SLUICE_FRONTEND_IMPORT_REMARKS_H

#include "frontend/TrainingSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace sluice {

/// Appends a line for each: scores whose classes stand where the loss does not look for them, statistics of single
/// values, statistics that forget all but the last batch.
void remarkOnTraining(mlir::ModuleOp module, const TrainingSpec &spec, std::vector<std::string> &remarks);

} // namespace sluice

#endif
