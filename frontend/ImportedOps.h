// SPDX-License-Identifier: Apache-2.0
// Names of the ONNX ops that are imported as themselves. Others that ONNX defines as a composition are inlined by
// OnnxFile.
#ifndef SLUICE_FRONTEND_IMPORTED_OPS_H
#define SLUICE_FRONTEND_IMPORTED_OPS_H

#include <string>

namespace sluice {

/// Whether an op of the default domain has an importer or is folded.
bool isImportedOp(const std::string &opType);

} // namespace sluice

#endif
