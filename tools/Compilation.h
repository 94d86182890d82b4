// SPDX-License-Identifier: Apache-2.0
// One run of the compiler over a model: context, module, and the first error of its passes.
#pragma once

#include "frontend/Buckets.h"
#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"
#include "passes/Pipeline.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// One model on its way through the levels, with what was said about it. Not for several models: diagnostics of all
/// would be one text.
class Compilation {
public:
  Compilation();

  /// The model's forward graph becomes the module. The file must outlive the compilation.
  Status import(OnnxFile &file, const TrainingSpec &spec, const DimBuckets &buckets = {});
  /// Runs the passes from the level that is reached, Linearized at most, up to another; false sets error(), and
  /// smallestBudget() when the budget was the matter.
  bool run(Level until, const PipelineOptions &options);

  mlir::ModuleOp module() { return *owner; }
  const std::string &error() const { return text; }
  const std::vector<std::string> &notes() const { return attached; }  ///< to the error
  const std::vector<std::string> &remarks() const { return decided; } ///< what was decided, a line each
  std::optional<int64_t> smallestBudget() const { return cause.smallestBudget; }
  int exitStatus() const { return cause.status; } ///< after a failed run

private:
  /// A line of remarks() for parameters that no gradient reaches.
  void remarkOnUnreached();
  /// The text; after the node that its location names, unless it does so itself.
  std::string describe(const mlir::Diagnostic &diagnostic) const;

  mlir::MLIRContext context;
  Level reached = Level::Forward;
  std::string text;
  std::vector<std::string> attached, decided;
  PlanningFailure cause;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> owner;
};

} // namespace sluice
