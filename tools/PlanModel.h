// SPDX-License-Identifier: Apache-2.0
// From an ONNX model and sluicec's flags to the planner's problem and to the plan of the compiled program, for reports
// and for sluice-plan --model.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/strategies/Registry.h"
#include "runtime/Result.h"
#include "tools/Compilation.h"
#include "tools/Driver.h"

#include <optional>

#include <string>
#include <vector>

namespace sluice {

/// What there is to plan of a model's training step.
struct ModelProblem {
  planner::Problem problem;
  planner::Options options; ///< what the compiled program may do
  std::string device;
  planner::Bytes memory = 0;       ///< of the device; 0: unknown
  std::vector<int64_t> shared;     ///< elements of each optimizer state of which ranks have shares
  std::vector<std::string> inputs; ///< files that were read
  int status = 0;                  ///< exit status when something is wrong
  std::string error; ///< empty: `problem` is valid, unless status says that the command line was the matter
  std::vector<std::string> notes; ///< on the error
};

/// The plan of the program that sluicec makes of the same options, by the model's problem.
struct CompiledPlan {
  planner::Plan plan;
  planner::Bytes budget = 0;
  planner::Seconds bound = 0;
  int status = 0;                        ///< exit status when something is wrong
  std::string error;                     ///< empty: `plan` is valid
  std::vector<std::string> notes;        ///< on the error
  std::optional<int64_t> smallestBudget; ///< when the budget was the matter
};

/// One compilation, which is asked for the problem first, then for the plan.
class PlannedModel {
public:
  explicit PlannedModel(const DriverOptions &options) : options(options) {}

  /// Compiles as far as the linearized program.
  ModelProblem problem();
  /// Goes on from there to the placed program.
  CompiledPlan plan(const planner::Problem &problem);

private:
  Status linearize(ModelProblem &result);

  const DriverOptions &options;
  std::optional<OnnxFile> file; // outlives the compilation
  Compilation compilation;
};

/// `flags` are sluicec's, without the model.
ModelProblem problemOfModel(const std::string &model, const std::vector<std::string> &flags);

} // namespace sluice
