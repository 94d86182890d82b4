// SPDX-License-Identifier: Apache-2.0
// Bisection over batch sizes, every one compiled as far as its plan.
#include "tools/MaxBatch.h"

#include "passes/plan/PlanAttribute.h"
#include "runtime/Printable.h"
#include "tools/Compilation.h"
#include "tools/Failure.h"
#include "tools/MemoryWords.h"

#include <cstdio>
#include <iostream>

namespace sluice {

namespace {

/// The outcome of planning for one batch.
struct Trial {
  bool fits = false;
  int64_t arena = 0, smallest = 0; ///< bytes; `smallest` when it does not fit
  double seconds = 0;
  std::string error; ///< not about the budget
  std::vector<std::string> notes;
};

/// A compilation of its own for each batch: extents are fixed from the import on. A budget that is too small is no
/// error here, but how the search ends.
Trial tryBatch(const DriverOptions &options, OnnxFile &file, int64_t batch) {
  Trial trial;
  TrainingSpec spec = options.spec;
  spec.batch = batch;
  Compilation compilation;
  if (Status imported = compilation.import(file, spec, options.buckets); !imported) {
    trial.error = imported.error();
    trial.notes = compilation.notes();
    return trial;
  }
  if (!compilation.run(Level::Planned, options.pipeline)) {
    if (auto smallest = compilation.smallestBudget())
      trial.smallest = *smallest;
    else
      trial.error = options.model + ": " + compilation.error(), trial.notes = compilation.notes();
    return trial;
  }
  const train::PlanAttr plan = planOfStep(compilation.module());
  if (!plan) {
    trial.error = options.model + ": the planned module has no plan";
    return trial;
  }
  trial.fits = true;
  trial.seconds = plan.getSeconds().getValueAsDouble();
  trial.arena = plan.getArena();
  return trial;
}

} // namespace

/// `low` fits and `high` does not. An error with a larger batch than one that fits ends the search as a batch that does
/// not, since limits on tensors are errors of the import.
int printMaxBatch(const DriverOptions &options, OnnxFile &file) {
  // Beyond this no index of a tensor would fit anyway.
  constexpr int64_t most = int64_t(1) << 24;
  int64_t low = 0,
          high = options.pipeline.partsAlong == CutAlong::Batch ? options.pipeline.stepParts : 1; // a sample a part
  Trial best, above;
  for (; high <= most; high *= 2) {
    Trial trial = tryBatch(options, file, high);
    if (!trial.error.empty() && low == 0)
      return fail("sluicec", 1, trial.error, trial.notes);
    if (!trial.fits) {
      above = trial;
      break;
    }
    best = trial;
    low = high;
  }
  if (low == 0) {
    fail("sluicec", 3,
         options.model + ": not even batch " + std::to_string(high) + " fits a budget of " + options.pipeline.budget);
    std::cerr << "smallest feasible budget: " << above.smallest << " bytes\n";
    printNotes("sluicec", unitMeant(options.pipeline.budget, /*shares=*/false));
    return 3;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    Trial trial = tryBatch(options, file, middle);
    (trial.fits ? low : high) = middle;
    (trial.fits ? best : above) = trial;
  }
  std::printf("largest batch: %lld\n", static_cast<long long>(low));
  std::printf("predicted: %.6g s a step, %.6g samples/s, arena %lld bytes\n", best.seconds,
              best.seconds > 0 ? static_cast<double>(low) / best.seconds : 0.0, static_cast<long long>(best.arena));
  if (above.smallest > 0)
    std::printf("batch %lld needs %lld bytes\n", static_cast<long long>(high), static_cast<long long>(above.smallest));
  else if (!above.error.empty())
    std::printf("batch %lld: %s\n", static_cast<long long>(high), printable(above.error).c_str());
  return 0;
}

} // namespace sluice
