// SPDX-License-Identifier: Apache-2.0
// A look at ranks and divisors before those shape inferences of the ONNX library that index or divide without one.
#ifndef SLUICE_FRONTEND_GUARDED_SCHEMAS_H
#define SLUICE_FRONTEND_GUARDED_SCHEMAS_H

namespace sluice {

/// Replaces the library's schemas of such ops by guarded ones, once a process. To be called before the library infers
/// shapes of a model that nobody has looked at: its inliner does, and takes no schemas but its own.
void guardShapeInference();

} // namespace sluice

#endif
