// SPDX-License-Identifier: Apache-2.0
// Limits of what a file may ask of the ONNX library's inliner, which recurses over calls and copies a body for each. No
// MLIR in here.
#ifndef SLUICE_FRONTEND_LOCAL_FUNCTIONS_H
#define SLUICE_FRONTEND_LOCAL_FUNCTIONS_H

#include "frontend/Limits.h"

namespace onnx {
class ModelProto;
}

namespace sluice {

/// Refuses graphs and functions with too many nodes, and functions that call themselves, nest too deeply, have the name
/// of another or of a standard op, or would make the graph larger than the limits say.
Status checkFunctions(const onnx::ModelProto &model, const Limits &limits);

} // namespace sluice

#endif
