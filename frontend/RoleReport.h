// SPDX-License-Identifier: Apache-2.0
// What a user is told of the roles of a model's tensors, and whether --freeze and --train name any of them.
#ifndef SLUICE_FRONTEND_ROLE_REPORT_H
#define SLUICE_FRONTEND_ROLE_REPORT_H

#include "frontend/OnnxGraph.h"
#include "frontend/Variables.h"

namespace sluice {

/// Adds a line to `remarks` that says how many tensors are trained and held and why, which of them rules decide, and
/// what a step lacks for those that are held by hand, and one for patterns of a list that match nothing. An error where
/// all patterns of --freeze or --train do.
Status reportRoles(mlir::ModuleOp module, const OnnxGraph &graph, const Variables &variables, const HandRoles &hand,
                   std::vector<std::string> &remarks);

/// Adds a line about outputs of the file that have no loss and are not among `predicted`, with the tensors that only
/// they need, and how they would be trained. Where --output was named, only if there are such tensors.
void reportLeftOut(const onnx::GraphProto &file, const OnnxGraph &graph, const std::vector<std::string> &predicted,
                   const TrainingSpec &spec, std::vector<std::string> &remarks);

} // namespace sluice

#endif
