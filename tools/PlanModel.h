// SPDX-License-Identifier: Apache-2.0
// From an ONNX model and sluicec's flags to the planner's problem, for reports and for sluice-plan --model.
#pragma once

#include "passes/planner/Problem.h"
#include "tools/Driver.h"

#include <string>
#include <vector>

namespace sluice {

struct ModelProblem {
  planner::Problem problem;
  std::string device;
  int status = 0;    ///< exit status when something is wrong
  std::string error; ///< empty: `problem` is valid, unless status says that the command line was the matter
};

ModelProblem problemOfModel(const DriverOptions &options);

/// `flags` are sluicec's, without the model.
ModelProblem problemOfModel(const std::string &model, const std::vector<std::string> &flags);

} // namespace sluice
