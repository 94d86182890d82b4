// SPDX-License-Identifier: Apache-2.0
// What a plan's lossy actions do to the gradients, and what each activation could be packed into: the module attribute
// `train.lossy` (#train.lossy), which plan-memory leaves for reports and for codegen.
#pragma once

#include "runtime/PackedForms.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::train {

/// An activation that has packed forms, by its storage's name; with the relative error of the gradients that its own
/// action is expected to cause.
struct LossyTensor {
  std::string storage;
  sluice::Comparison compared = sluice::Comparison::None;
  double error = 0;
};

struct LossyPlan {
  double budget = 0, error = 0; ///< of the whole plan; without an error budget both are 0
  bool usual = false;           ///< some errors are what codecs usually do, not measured
  std::vector<LossyTensor> tensors;

  /// Null for a storage without packed forms.
  const LossyTensor *find(llvm::StringRef storage) const;
};

void setLossyPlan(mlir::ModuleOp module, const LossyPlan &plan);

/// Empty where the module has none.
LossyPlan lossyPlanOf(mlir::ModuleOp module);

} // namespace sluice::train
