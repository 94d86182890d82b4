// SPDX-License-Identifier: Apache-2.0
// Adapters as LoRA has them: which products of two narrow matrices stand beside which weight, so that programs can add
// the one to the other.
#ifndef SLUICE_FRONTEND_ADAPTERS_H
#define SLUICE_FRONTEND_ADAPTERS_H

#include "ir/Train.h"
#include "runtime/Result.h"

namespace sluice {

/// Sets the module's train.adapters by what @evaluate computes, where there are some.
void noteAdapters(mlir::ModuleOp module);
/// Whether it is known of each variable that begins as lengths whose they are.
Status checkMagnitudes(mlir::ModuleOp module);

} // namespace sluice

#endif
