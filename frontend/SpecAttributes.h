// SPDX-License-Identifier: Apache-2.0
// What passes and codegen read of a TrainingSpec.
#pragma once

#include "frontend/OnnxGraph.h"
#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// Gives a module the attributes that ir/TrainDialect.td lists, as far as no loss has to be attached for them.
void setAttributes(mlir::ModuleOp module, const TrainingSpec &spec, const OnnxGraph &graph);

} // namespace sluice
