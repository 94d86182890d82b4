// SPDX-License-Identifier: Apache-2.0
// What sluicec does once its command line is understood, see Driver.h.
#include "tools/Driver.h"

#include "frontend/OnnxImport.h"
#include "ir/Sched.h"
#include "ir/TensorName.h"
#include "ir/Train.h"
#include "passes/plan/Explain.h"
#include "passes/plan/PlanAttribute.h"
#include "passes/planner/Simulate.h"
#include "runtime/Printable.h"
#include "runtime/program/Report.h"
#include "tools/Check.h"
#include "tools/Cluster.h"
#include "tools/Compilation.h"
#include "tools/Destinations.h"
#include "tools/Emit.h"
#include "tools/Failure.h"
#include "tools/MaxBatch.h"
#include "tools/MemoryWords.h"
#include "tools/PlanModel.h"
#include "tools/Sweep.h"

#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace mlir;
using namespace sluice;

namespace {

int fail(int status, const std::string &message) { return sluice::fail("sluicec", status, message); }

/// --parts=auto, where scores of a loss are a large share of the smallest budget.
std::vector<std::string> partsHint(ModuleOp module, const PipelineOptions &pipeline, int64_t smallestBudget) {
  if (pipeline.hasParts())
    return {};
  RankedTensorType scores;
  module.walk([&](train::SoftmaxCrossEntropyOp loss) {
    auto type = cast<RankedTensorType>(loss.getX().getType());
    if (type.getRank() == 2 && (!scores || train::bytes(type) > train::bytes(scores))) // rows of scores
      scores = type;
  });
  if (!scores || 8 * train::bytes(scores) < smallestBudget)
    return {};
  return {"the scores of its loss take " + bytesText(static_cast<size_t>(train::bytes(scores))) +
          ", and their gradients as much again; --parts=auto computes them in parts"};
}

/// The smallest budget is a line of its own, which scripts read.
int failPlanning(const DriverOptions &options, int status, const std::string &message,
                 const std::vector<std::string> &notes, std::optional<int64_t> smallestBudget) {
  sluice::fail("sluicec", status, message, notes);
  if (!smallestBudget)
    return status;
  std::cerr << "smallest feasible budget: " << *smallestBudget << " bytes\n";
  printNotes("sluicec", unitMeant(options.pipeline.budget, /*shares=*/true));
  return status;
}

Level levelOf(Emit emit) { return emit >= Emit::Placed ? Level::Placed : static_cast<Level>(emit); }

/// The trade-off curves, and the plan for the strategy and the budget at hand.
int writeReport(const DriverOptions &options) {
  PlannedModel compiled(options);
  ModelProblem model = compiled.problem();
  if (!model.error.empty())
    return sluice::fail("sluicec", model.status, model.error, model.notes);
  if (Status free = Destinations(model.inputs, options.force).check(outputPath(options), Made::Report); !free)
    return fail(1, free.error());
  const std::string title = std::filesystem::path(options.model).filename().string();
  Sweep sweep = sweepOf(std::move(model.problem), model.options, title, model.device);
  // Without a budget the default strategy keeps everything, which explains nothing.
  if (!options.pipeline.budget.empty() || options.pipeline.strategy != "auto") {
    CompiledPlan chosen = compiled.plan(sweep.problem);
    if (!chosen.error.empty())
      return failPlanning(options, chosen.status, chosen.error, chosen.notes, chosen.smallestBudget);
    SweepPoint &point = sweep.chosen.emplace();
    point.budget = std::min(chosen.budget, sweep.keep.arenaBytes);
    point.makespan = simulate(sweep.problem, chosen.plan).makespan;
    point.bound = chosen.bound;
    point.plan = std::move(chosen.plan);
  }
  addCurves(sweep, sweepStrategies(), 12);
  Status written = writeReportFile(outputPath(options), sweep, Destinations(model.inputs, options.force));
  return written ? 0 : fail(1, written.error());
}

/// One line: what came of it, what it takes and how long a step should.
void printMade(const DriverOptions &options, ModuleOp module) {
  auto step = module.lookupSymbol<sched::ProgramOp>("step");
  const train::PlanAttr plan = planOfStep(module);
  if (!step || !plan || options.emit < Emit::Project || !step.isPlaced())
    return;
  const int64_t device = step.bytesOf(sched::Space::Device), host = step.bytesOf(sched::Space::Host);
  std::cout << printable(outputPath(options).string()) << ": " << bytesText(static_cast<size_t>(device)) << " of "
            << (factsOf(options.pipeline.target).device ? "device memory" : "memory");
  if (host > 0)
    std::cout << " and " << bytesText(static_cast<size_t>(host)) << " of host memory";
  const std::string &profile = options.pipeline.device;
  const bool named = profile.find('/') == std::string::npos || options.deviceNamed;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g", plan.getSeconds().getValueAsDouble());
  std::cout << ", " << seconds << " s a step predicted for " << (named ? printable(profile) : "this machine");
  if (auto parts = module->getAttrOfType<StringAttr>(train::partsAttribute))
    std::cout << ", " << printable(parts.getValue().str());
  std::cout << gapText(plan) << std::endl;
}

/// The order is by cost: what ends early comes before the import, and the output's place is looked at before planning,
/// which may take minutes. A report compiles on its own, as it needs the problem and not only the plan.
int compileModel(const DriverOptions &options) {
  if (options.emit == Emit::Report && !options.check)
    return writeReport(options);
  if (!options.pipeline.interconnect.empty() && !options.check)
    return predictCluster(options);
  Result<OnnxFile> file = OnnxFile::read(options.model, options.spec.limits);
  if (!file)
    return fail(1, file.error());
  if (options.check)
    return checkModel(options, *file);
  if (options.maxBatch)
    return printMaxBatch(options, *file);
  // Before minutes of planning; the files beside a program are known later.
  if (Status free = options.listParameters ? Success{} : checkDestination(options, *file); !free)
    return fail(1, free.error());
  Compilation compilation;
  TrainingSpec spec = options.spec;
  spec.assumesOpen = options.listParameters; // parameters have the same shapes in any batch
  if (Status imported = compilation.import(*file, spec, options.buckets); !imported)
    return sluice::fail("sluicec", 1, imported.error(), compilation.notes());
  if (options.listParameters) {
    printNotes("sluicec", compilation.remarks());
    std::cout << listParameters(compilation.module(), &*file);
    return 0;
  }
  if (!compilation.run(levelOf(options.emit), options.pipeline)) {
    failPlanning(options, compilation.exitStatus(), options.model + ": " + compilation.error(), compilation.notes(),
                 compilation.smallestBudget());
    if (const std::optional<int64_t> smallest = compilation.smallestBudget())
      printNotes("sluicec", partsHint(compilation.module(), options.pipeline, *smallest));
    return compilation.exitStatus();
  }
  if (options.explain)
    std::cout << explain(compilation.module())
              << (options.pipeline.oneMemory && options.pipeline.home == Space::Host
                      ? "memory is all that the program plans, the slots of the next batch "
                        "included; --host-budget opens another for what is offloaded\n"
                      : "");
  if (Status emitted = emit(options, *file, compilation.module()); !emitted)
    return fail(1, emitted.error());
  printMade(options, compilation.module());
  printNotes("sluicec", compilation.remarks());
  return 0;
}

} // namespace

int sluice::compile(const DriverOptions &options) {
  setCrashContext(options.model);
  try {
    return compileModel(options);
  } catch (
      const std::filesystem::filesystem_error &error) { // a path that is too long, a folder that may not be entered
    return fail("sluicec", 1, error.path1().string() + ": " + error.code().message());
  } catch (const std::exception &exception) {
    return fail("sluicec", 4, options.model + ": internal error: " + exception.what());
  }
}
