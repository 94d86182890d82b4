// SPDX-License-Identifier: Apache-2.0
// Goes through the same classes as a program's run: a step's samples are a data set of their own.
#include "runtime/library/Model.h"

#include "runtime/Codec.h"
#include "runtime/Printable.h"
#include "runtime/program/Begin.h"
#include "runtime/program/Flags.h"
#include "runtime/program/InitialWeights.h"
#include "runtime/program/Initialize.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/Report.h"

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <variant>

namespace sluice {

/// What kernels were made for. They are one program's, and all its handles use them.
static void prepareOnce(const Program &program, const Entry &entry, std::optional<int64_t> wanted) {
  static std::mutex mutex;
  static int64_t prepared = 0; ///< threads; 0: nothing is prepared
  const std::lock_guard<std::mutex> lock(mutex);
  if (prepared > 0 && wanted && *wanted != prepared)
    throw UsageError(text("threads: ", *wanted, ", the kernels of this library were made for ", prepared,
                          " when it was opened first"));
  if (prepared > 0)
    return;
  prepareKernels(program, entry, wanted);
  prepared = threads();
}

static void checkLimit(const Program &program, uint64_t limit) {
  const bool both = runtimeTarget() == Target::Host;
  const uint64_t needed = program.deviceBytes + (both ? program.hostBytes : 0);
  if (limit > 0 && needed > limit)
    throw MemoryNotAvailable(text("memory_limit is ", limit, " bytes, the plan takes ", needed,
                                  "; compile again with --memory-budget=", limit));
}

Model::Model(const sluice_program &library, const sluice_options &options)
    : options(options), program(library.program), entry(library.entry), openFiles(library.openData) {
  if (options.threads < 0)
    throw UsageError(text("threads: ", options.threads, " is negative"));
  const auto inFiles = [&](const char *&name, std::string &path) {
    if (name && options.files)
      path = joinPath(std::filesystem::absolute(options.files).string(), name), name = path.c_str();
  };
  inFiles(program.weightsFile, weightsFile);
  inFiles(program.exportTemplate, exportTemplate);
  checkLimit(program, options.memory_limit);
  if (options.offload_to && runtimeTarget() == Target::Cuda)
    throw UsageError("offload_to is for the host: copies to a GPU come from locked memory");
  if (options.offload_to)
    requireUnused("offload_to", options.offload_to);
  prepareOnce(program, entry, options.threads > 0 ? std::optional<int64_t>(options.threads) : std::nullopt);
  session = openSession(program, program.deviceBytes, options.offload_to);
  arguments.seed = run.seed = options.seed;
  beginSession(*session, program, arguments.stepState(program.optimizer), {}, true,
               [this](const std::string &what) { tell(what); });
  startDerived(*session, program);
  startLossScale(*session, program, arguments, false);
  if (program.preparation)
    run.preparation = readPreparation(program.preparation);
  beginSteps();
}

void Model::tell(const std::string &line) const noexcept {
  try {
    if (options.log)
      options.log(options.user, printable(line).c_str());
  } catch (...) {
    // On threads of the session nobody could catch it.
  }
}

/// The flags that are hyperparameters of a step, without those that are words.
static const Flag &hyperparameter(const std::string &name) {
  static constexpr const char *known[] = {"lr",        "momentum", "weight-decay",    "beta1",     "beta2",
                                          "epsilon",   "alpha",    "lr-decay",        "nesterov",  "clip-value",
                                          "clip-norm", "ema",      "label-smoothing", "accumulate"};
  std::string list;
  for (const char *one : known) {
    if (name == one)
      return *findFlag("--" + name);
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  throw UsageError(text("there is no hyperparameter '", printable(name), "'; there are ", list));
}

void Model::set(const std::string &name, double value) {
  const Flag &flag = hyperparameter(name);
  const bool isSwitch = std::holds_alternative<bool Arguments::*>(flag.field);
  char number[40];
  std::snprintf(number, sizeof number, "%.17g", value);
  Arguments changed = arguments;
  setFlag(changed, flag, !isSwitch ? number : value == 0 ? "false" : "true");
  checkHyperparameters(changed, program);
  arguments = changed;
  applyHyperparameters();
}

double Model::get(const std::string &name) const {
  const Flag &flag = hyperparameter(name);
  const StepState state = arguments.stepState(program.optimizer);
  const std::pair<const char *, double> values[] = {
      {"lr", state.learningRate},  {"momentum", state.momentum},    {"weight-decay", state.weightDecay},
      {"beta1", state.beta1},      {"beta2", state.beta2},          {"epsilon", state.epsilon},
      {"alpha", state.alpha},      {"lr-decay", state.rateDecay},   {"nesterov", state.nesterov},
      {"ema", state.averageDecay}, {"clip-value", state.clipValue}, {"clip-norm", state.clipNorm}};
  for (const auto &[known, value] : values)
    if (name == known)
      return value;
  return flag.field == FlagField(&Arguments::accumulate) ? static_cast<double>(state.batches)
                                                         : arguments.labelSmoothing.value_or(0);
}

void Model::applyHyperparameters() {
  StepState state = arguments.stepState(program.optimizer);
  state.seed = session->state.seed;
  state.step = session->state.step;
  session->state = state;
  beginSteps();
}

/// The step and its data set, for what hyperparameters say now.
void Model::beginSteps() {
  forgetPrefetched();
  const int64_t samples = program.batch * session->state.batches;
  auto source = std::make_unique<MemorySource>(program, samples);
  shown = source.get();
  DataOptions how;
  how.where = "the tensors of a step";
  how.workers = threads();
  stepper.reset();
  batches.reset();
  data = std::make_unique<Dataset>(how, program, std::move(source));
  batches.emplace(*session, program, *data);
  stepper.emplace(*session, program, entry, arguments, [this](const StepResult &result) { lastLoss = result.loss; });
}

/// What is on the device after an error of it is not known; after one of the data it is.
void Model::endStepThatFailed() {
  try {
    throw;
  } catch (const ValueNotStorable &) {
    session->forgetFailure();
    applyHyperparameters(); // those of evaluations among them
  } catch (const std::exception &error) {
    broken = error.what();
  }
}

void Model::requireWhole() const {
  if (!broken.empty())
    throw DeviceError("the weights are not known since a step failed: " + broken);
}

void Model::throwIfCancelled() {
  if (cancelled.exchange(false))
    throw Cancelled("cancelled");
}

float Model::step(MemorySource::Tensors inputs, MemorySource::Tensors targets) {
  requireWhole();
  throwIfCancelled();
  forgetPrefetched();
  shown->show(inputs, &targets);
  run.position = {};
  // Looks at what tensors hold. The other batches of a step are gathered beside it.
  if (session->state.batches == 1)
    batches->prefetchForOne(run.position);
  else
    batches->prefetchAlone(run.position);
  try {
    (*stepper)(*batches, *data, run, run.step + 1, [](bool) { return false; });
  } catch (...) {
    endStepThatFailed();
    throw;
  }
  run.position = {};
  return lastLoss;
}

std::string Model::variables() const { return describeVariables(program); }

std::string Model::plan() const { return describePlan(program); }

} // namespace sluice
