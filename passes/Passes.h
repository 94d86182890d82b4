// SPDX-License-Identifier: Apache-2.0
// Generated declarations of all passes, and their registration.
#pragma once

#include "ir/Train.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sluice {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace sluice
