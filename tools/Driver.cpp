// SPDX-License-Identifier: Apache-2.0
// What sluicec does once its command line is understood, see Driver.h.
#include "tools/Driver.h"

#include "frontend/OnnxImport.h"
#include "passes/Explain.h"
#include "passes/HostKernels.h"
#include "passes/Passes.h"
#include "passes/PlanAttribute.h"
#include "tools/Emit.h"

#include "ir/Sched.h"

#include "llvm/Support/raw_ostream.h"
#include <iostream>

using namespace mlir;
using namespace sluice;

namespace {

int fail(int status, const std::string &message) {
  std::cerr << "sluicec: error: " << message << "\n";
  return status;
}

/// Collects the first error of the passes; the driver prints it as one line.
class FirstError {
public:
  explicit FirstError(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && text.empty())
            text = diagnostic.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

Stage stageOf(Emit emit) { return emit >= Emit::Placed ? Stage::Placed : static_cast<Stage>(emit); }

int compileModel(const DriverOptions &options) {
  Result<OnnxFile> file = OnnxFile::read(options.model);
  if (!file)
    return fail(1, file.error());
  MLIRContext context;
  context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  FirstError error(context);
  auto module = importOnnx(context, *file, options.spec);
  if (!module)
    return fail(1, module.error());
  if (options.listParameters) {
    std::cout << listParameters(**module);
    return 0;
  }
  planForThreads(options.threads);
  PipelineOptions pipeline = options.pipeline;
  if (failed(runPipeline(**module, stageOf(options.emit), pipeline))) {
    auto status = (**module)->getAttrOfType<IntegerAttr>(exitStatusName);
    fail(0, options.model + ": " + (error.text.empty() ? "compilation failed" : error.text));
    if (auto smallest = (**module)->getAttrOfType<IntegerAttr>(smallestBudgetName))
      std::cerr << "smallest feasible budget: " << smallest.getInt() << " bytes\n";
    return status ? status.getInt() : 1;
  }
  if (options.explain)
    std::cout << explain(**module);
  Status emitted = emit(options, *file, **module);
  return emitted ? 0 : fail(1, emitted.error());
}

} // namespace

int sluice::compile(const DriverOptions &options) {
  try {
    return compileModel(options);
  } catch (const std::exception &exception) {
    return fail(4, options.model + ": internal error: " + exception.what());
  }
}
