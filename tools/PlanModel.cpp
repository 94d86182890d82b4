// SPDX-License-Identifier: Apache-2.0
// Runs the compiler as far as the linearized program and hands its problem out.
#include "tools/PlanModel.h"

#include "passes/HostKernels.h"
#include "passes/Passes.h"
#include "passes/ProblemOfStep.h"
#include "passes/planner/Profile.h"
#include "tools/Compilation.h"

using namespace mlir;

namespace sluice {

ModelProblem problemOfModel(const DriverOptions &options) {
  ModelProblem result;
  auto fail = [&](int status, const std::string &error) {
    result.status = status;
    result.error = error;
    return result;
  };
  Result<OnnxFile> file = OnnxFile::read(options.model);
  if (!file)
    return fail(1, file.error());
  Compilation compilation;
  if (Status imported = compilation.import(*file, options.spec); !imported)
    return fail(1, imported.error());
  planForThreads(options.threads);
  if (!compilation.run(Stage::Linearized, options.pipeline))
    return fail(1, options.model + ": " + compilation.error());
  planner::Profile profile, own;
  std::string error;
  if (!loadProfile(options.pipeline.device, profile, error) ||
      (!options.pipeline.profile.empty() && !loadProfile(options.pipeline.profile, own, error)))
    return fail(1, options.model + ": " + error);
  overrideWith(profile, own);
  auto step = compilation.module().lookupSymbol<func::FuncOp>("step");
  if (!step)
    return fail(4, options.model + ": the module has no function @step");
  Buffers buffers(step);
  result.problem = problemOfStep(compilation.module(), step, buffers, profile);
  result.device = profile.device;
  return result;
}

ModelProblem problemOfModel(const std::string &model, const std::vector<std::string> &flags) {
  std::vector<std::string> words = {"sluice-plan", model};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  ModelProblem result;
  DriverOptions options;
  if (auto status = parseCommandLine(static_cast<int>(argv.size()), argv.data(), options)) {
    result.status = *status;
    return result;
  }
  return problemOfModel(options);
}

} // namespace sluice
