// SPDX-License-Identifier: Apache-2.0
// Values in place of those that a refused node would have made, so that the nodes after it are looked at as well.
#ifndef SLUICE_FRONTEND_ASSUMED_RESULTS_H
#define SLUICE_FRONTEND_ASSUMED_RESULTS_H

#include "frontend/NodeImport.h"

namespace sluice {

/// Float32 results whose shapes ONNX's schema of the op infers become arguments of the current block, which makes the
/// function one to drop; of all others nothing is known.
void assumeResults(NodeImport &node);

} // namespace sluice

#endif
