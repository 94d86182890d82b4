// SPDX-License-Identifier: Apache-2.0
// Generated declarations of all passes, and their registration.
#pragma once

#include "ir/Train.h"
#include "runtime/TargetTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sluice {

/// The words of an option that is a target.
struct TargetWords {
  template <typename Option> void apply(Option &option) const {
    for (const TargetFacts &facts : targetTable)
      option.getParser().addLiteralOption(facts.name, facts.target, "");
  }
};

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace sluice
