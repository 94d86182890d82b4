// SPDX-License-Identifier: Apache-2.0
// Runs the compiler as far as the linearized program and hands its problem out.
#include "tools/PlanModel.h"

#include "frontend/OnnxImport.h"
#include "ir/Sched.h"
#include "passes/HostKernels.h"
#include "passes/Passes.h"
#include "passes/ProblemOfStep.h"
#include "tools/Driver.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace sluice {

static void importModel(const DriverOptions &options, ModelProblem &result) {
  auto fail = [&](int status, const std::string &error) {
    result.status = status;
    result.error = options.model + ": " + (error.empty() ? "compilation failed" : error);
  };
  Result<OnnxFile> file = OnnxFile::read(options.model);
  if (!file) {
    result.status = 1;
    result.error = file.error();
    return;
  }
  MLIRContext context;
  context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect,
                      math::MathDialect>();
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && first.empty())
      first = diagnostic.str();
    return success();
  });
  auto module = importOnnx(context, *file, options.spec);
  if (!module) {
    result.status = 1;
    result.error = module.error();
    return;
  }
  planForThreads(options.threads);
  if (failed(runPipeline(**module, Stage::Linearized, options.pipeline)))
    return fail(1, first);
  planner::Profile profile, own;
  std::string error;
  if (!loadProfile(options.pipeline.device, profile, error) ||
      (!options.pipeline.profile.empty() && !loadProfile(options.pipeline.profile, own, error)))
    return fail(1, error);
  overrideWith(profile, own);
  auto step = (*module)->lookupSymbol<func::FuncOp>("step");
  if (!step)
    return fail(4, "the module has no function @step");
  Buffers buffers(step);
  result.problem = problemOfStep(**module, step, buffers, profile);
  result.device = profile.device;
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
  importModel(options, result);
  return result;
}

} // namespace sluice
