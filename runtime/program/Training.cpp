// SPDX-License-Identifier: Apache-2.0
// Order within a step: enqueue the step, gather the next batch while it runs, synchronize, read the loss. A loss that
// is not finite ends the run before anything is written, so the last checkpoint is from before.

#include "runtime/program/Training.h"

#include "runtime/files/OutputFile.h"
#include "runtime/program/Batches.h"
#include "runtime/program/Evaluate.h"
#include "runtime/program/GradientDump.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Outputs.h"
#include "runtime/program/Progress.h"
#include "runtime/program/Report.h"

#include "runtime/Codec.h"
#include "runtime/Kernels.h"

#include <chrono>
#include <cmath>
#include <cstdio>

namespace sluice {

namespace {

class Trainer {
public:
  Trainer(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
          TrainingFiles &files, RunState run)
      : session(session), program(program), entry(entry), arguments(arguments), files(files), run(run) {}

  Recording runAll();

private:
  void loop();
  float oneStep(Batches &batches, Position next, int64_t last);
  void sayWhatIsTrained(int64_t last) const;
  void beginExtras();
  void endExtras(bool lastStep);
  int64_t lastStep() const;
  bool checkpointIsDue(bool epochEnds) const;
  void saveCheckpoint();
  void loopAndSave();
  void runEvaluation();
  void logStart() const;
  void logEnd() const;
  std::string lastSaved() const;
  [[noreturn]] void failOnLoss(float loss) const;

  Session &session;
  const Program &program;
  const Entry &entry;
  const Arguments &arguments;
  TrainingFiles &files;
  RunState run;

  static constexpr size_t timedSteps = 100000; ///< enough for a median, little enough to keep
  std::vector<double> stepSeconds;
  int64_t stepsDone = 0; ///< by this run
  std::unique_ptr<GradientDump> gradients;
  std::vector<OpRecord> traced, profiled;
  int64_t profiledSteps = 0;
  int64_t savedStep = -1, evaluatedStep = -1;
  bool stepIsWhole = false; ///< the last step has ended, with a finite loss
};

/// Number of the step that ends the run: --steps, or the last whole step of epoch --epochs (default 1).
int64_t Trainer::lastStep() const {
  if (arguments.steps)
    return *arguments.steps;
  Position position = files.training->normalize(run.position);
  int64_t epochs = arguments.epochs.value_or(1), perEpoch = files.training->batches(), left = 0, last = 0;
  if (position.epoch >= epochs)
    return run.step;
  bool overflow = __builtin_mul_overflow(epochs - position.epoch, perEpoch, &left) ||
                  __builtin_add_overflow(run.step, left - position.sample / program.batch, &last);
  if (overflow)
    throw UsageError(text("--epochs ", epochs, " of ", perEpoch, " steps are more steps than can be counted"));
  return last;
}

void Trainer::logStart() const {
  const StepState &state = session.state;
  LogFields fields = {{"model", program.model},
                      {"strategy", program.strategy},
                      {"device_bytes", uint64_t{program.deviceBytes}},
                      {"host_bytes", uint64_t{program.hostBytes}},
                      {"device_base_bytes", uint64_t{program.deviceBase}},
                      {"predicted_ms", program.predictedSecondsPerStep * 1e3},
                      {"batch", program.batch},
                      {"threads", int64_t{threads()}},
                      {"seed", run.seed},
                      {"optimizer", optimizerName(program.optimizer)},
                      {"lr", shortest(state.learningRate)},
                      {"weight_decay", shortest(state.weightDecay)},
                      {"first_step", run.step + 1}};
  if (program.optimizer == Program::Optimizer::Sgd)
    fields.push_back({"momentum", shortest(state.momentum)});
  else
    for (auto [name, value] : {std::pair{"beta1", state.beta1}, {"beta2", state.beta2}, {"epsilon", state.epsilon}})
      fields.push_back({name, shortest(value)});
  if (files.training) {
    fields.push_back({"samples", files.training->samples()});
    fields.push_back({"steps_per_epoch", files.training->batches()});
    fields.push_back({"dropped_samples", files.training->dropped()});
  }
  files.log.write("start", fields);
}

void Trainer::logEnd() const {
  LogFields fields = {{"device_peak_bytes", uint64_t{session.peak(Space::Device)}},
                      {"host_peak_bytes", uint64_t{session.peak(Space::Host)}},
                      {"resident_peak_bytes", uint64_t{residentPeak()}},
                      {"steps", stepsDone},
                      {"median_ms", medianStep(stepSeconds) * 1e3},
                      {"predicted_ms", program.predictedSecondsPerStep * 1e3}};
  if (runtimeTarget() == Target::Cuda)
    fields.push_back({"driver_bytes", uint64_t{session.driverBytes()}});
  if (const Session::PackedBytes packed = session.packedBytes(); packed.raw > 0 && stepsDone > 0) {
    const auto perStep = [&](size_t bytes) { return static_cast<uint64_t>(bytes) / static_cast<uint64_t>(stepsDone); };
    fields.push_back({"zvc_raw_bytes", perStep(packed.raw)});
    fields.push_back({"zvc_packed_bytes", perStep(packed.packed)});
    if (program.poolBytes > 0) {
      fields.push_back({"zvc_pool_peak_bytes", uint64_t{packed.poolPeak}});
      fields.push_back({"zvc_spilled_bytes", perStep(packed.spilled)});
    }
  }
  for (const Dataset *data : {files.training.get(), files.evaluation.get()})
    if (data && data->skipped() > 0)
      fields.push_back(
          {data == files.training.get() ? "skipped_samples" : "skipped_evaluation_samples", data->skipped()});
  files.log.write("end", fields);
}

std::string Trainer::lastSaved() const {
  if (!arguments.checkpoint)
    return "no checkpoint was asked for";
  return savedStep >= 0 ? text("the last checkpoint in ", *arguments.checkpoint, " is from step ", savedStep)
                        : "this run wrote no checkpoint yet";
}

void Trainer::failOnLoss(float loss) const {
  throw LossNotFinite(text("the loss is ", loss, " at step ", run.step, "; ", lastSaved()));
}

/// Epochs of synthetic data are a few steps long and mean nothing.
bool Trainer::checkpointIsDue(bool epochEnds) const {
  if (arguments.checkpointEvery)
    return run.step % *arguments.checkpointEvery == 0;
  return epochEnds && *arguments.data != "synthetic";
}

void Trainer::saveCheckpoint() {
  if (!arguments.checkpoint || savedStep == run.step)
    return;
  writeCheckpoint(*arguments.checkpoint, session, program, run);
  savedStep = run.step;
}

void Trainer::runEvaluation() {
  if (!files.evaluation || evaluatedStep == run.step)
    return;
  const std::optional<Evaluation> found = evaluate(session, program, entry, *files.evaluation);
  if (!found)
    return; // interrupted
  const Evaluation &result = *found;
  evaluatedStep = run.step;
  LogFields fields = {{"step", run.step}, {"loss", result.loss}};
  std::printf("evaluation after step %lld: loss %.6g", static_cast<long long>(run.step), result.loss);
  if (result.accuracy) {
    fields.push_back({"accuracy", *result.accuracy});
    std::printf(", accuracy %.4f", *result.accuracy);
  }
  std::printf(" on %lld samples\n", static_cast<long long>(result.samples));
  std::fflush(stdout);
  fields.push_back({"samples", result.samples});
  files.log.write("evaluate", fields);
}

/// What only the first steps of a run do.
void Trainer::beginExtras() {
  if (arguments.dumpGradients)
    gradients = std::make_unique<GradientDump>(session);
  session.enableRecording(arguments.trace || arguments.profileOut || program.actionRows > 0,
                          arguments.profileOut.has_value());
}

void Trainer::endExtras(bool last) {
  if (gradients) {
    gradients->save(*arguments.dumpGradients);
    gradients.reset();
  }
  const bool wanted = arguments.trace || arguments.profileOut;
  const int64_t recorded = wanted ? recordedSteps : reportedSteps;
  if ((!wanted && program.actionRows == 0) || stepsDone > recorded)
    return;
  std::vector<OpRecord> records = session.takeRecords();
  traced.insert(traced.end(), records.begin(), records.end());
  if (stepsDone > 1 || last) {
    profiled.insert(profiled.end(), records.begin(), records.end());
    ++profiledSteps;
  }
  if (stepsDone < recorded && !last)
    return;
  session.enableRecording(false);
  if (arguments.trace)
    writeTrace(*arguments.trace, traced);
  traced = {};
}

/// The batch of this step was prefetched. Leaves the batch at `next` prefetched, unless this step is the last, and the
/// session synchronized.
float Trainer::oneStep(Batches &batches, Position next, int64_t last) {
  batches.advance();
  session.state.step = ++run.step;
  float loss = 0;
  try {
    session.enqueue(entry.step);
    if (run.step < last)
      batches.prefetch(next);
    session.read(program.loss, &loss);
  } catch (const ValueNotStorable &error) {
    throw LossNotFinite(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  } catch (const MemoryNotAvailable &error) {
    throw MemoryNotAvailable(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  } catch (const DeviceError &error) {
    throw DeviceError(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  }
  run.position = next;
  return loss;
}

/// Says what an epoch leaves out and whether there is anything to do.
void Trainer::sayWhatIsTrained(int64_t last) const {
  if (run.step >= last)
    std::printf("nothing to train: step %lld is done, the run ends at step %lld\n", static_cast<long long>(run.step),
                static_cast<long long>(last));
  if (int64_t dropped = files.training->dropped())
    std::printf("%lld of %lld samples are left out of every epoch: they do not fill a batch of %lld\n",
                static_cast<long long>(dropped), static_cast<long long>(files.training->samples()),
                static_cast<long long>(program.batch));
}

void Trainer::loop() {
  Batches batches(session, program, *files.training);
  int64_t last = lastStep();
  sayWhatIsTrained(last);
  Progress progress(run.step + 1, last, program.batch);
  run.position = files.training->normalize(run.position);
  if (run.step < last) {
    beginExtras();
    batches.prefetch(run.position);
    session.synchronize();
  }
  while (run.step < last && !interruptedBy()) {
    auto begin = std::chrono::steady_clock::now();
    Position current = run.position;
    Position next = files.training->normalize({current.epoch, current.sample + program.batch});
    stepIsWhole = false;
    float loss = oneStep(batches, next, last);
    stepIsWhole = std::isfinite(loss);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++stepsDone;
    if (stepSeconds.size() < timedSteps)
      stepSeconds.push_back(seconds);
    files.log.write("step", {{"step", run.step},
                             {"loss", double{loss}},
                             {"lr", shortest(session.state.learningRate)},
                             {"ms", seconds * 1e3},
                             {"data_wait_ms", batches.waitedSeconds() * 1e3},
                             {"epoch", current.epoch + 1}});
    endExtras(run.step == last);
    if (!stepIsWhole) {
      progress.endLine();
      failOnLoss(loss);
    }
    bool epochEnds = next.epoch != current.epoch;
    progress.step(run.step, current.epoch, loss, epochEnds);
    if (checkpointIsDue(epochEnds))
      saveCheckpoint();
    if (epochEnds && files.evaluation) {
      progress.endLine();
      runEvaluation();
      if (run.step < last)
        batches.prefetch(run.position);
      session.synchronize();
    }
  }
}

/// The steps that were done are not lost with a log, say, that takes no more.
void Trainer::loopAndSave() {
  try {
    if (files.training)
      loop();
  } catch (const DataError &) {
    try {
      if (stepIsWhole)
        saveCheckpoint();
    } catch (const DataError &) {
      // The first error is the one to tell.
    }
    throw;
  }
  saveCheckpoint();
}

Recording Trainer::runAll() {
  logStart();
  loopAndSave();
  if (!interruptedBy())
    runEvaluation();
  if (interruptedBy())
    std::printf("interrupted after step %lld\n", static_cast<long long>(run.step));
  logEnd();
  for (const Dataset *data : {files.training.get(), files.evaluation.get()})
    if (data && data->skipped() > 0)
      std::printf("%lld of %lld %s samples were bad and skipped\n", static_cast<long long>(data->skipped()),
                  static_cast<long long>(data->samples()), data == files.training.get() ? "training" : "evaluation");
  printReport(program, session, stepSeconds);
  printActions(program, session, profiled, profiledSteps, stepsDone);
  if (const int signal = interruptedBy())
    throw Interrupted{signal};
  return {std::move(profiled), profiledSteps};
}

} // namespace

TrainingFiles::TrainingFiles(const Arguments &arguments, const Program &program, uint64_t seed) {
  if (arguments.data) {
    DataOptions options = dataOptions(arguments, seed);
    options.where = *arguments.data;
    if (arguments.validationSplit) {
      options.share = DataOptions::Share::Validation;
      evaluation = std::make_unique<Dataset>(options, program);
      options.share = DataOptions::Share::Training;
    }
    options.shuffle = arguments.shuffle;
    options.images.random = true;
    training = std::make_unique<Dataset>(options, program);
  }
  if (arguments.evaluate) {
    DataOptions options = dataOptions(arguments, seed);
    options.where = *arguments.evaluate;
    evaluation = std::make_unique<Dataset>(options, program);
  }
  std::vector<std::string> inputs = {"/proc/self/exe"};
  for (const auto &data : {training.get(), evaluation.get()})
    if (data)
      for (const std::string &path : data->paths())
        inputs.push_back(path);
  for (const char *beside : {program.weightsFile, program.exportTemplate})
    if (beside)
      inputs.push_back(besideExecutable(beside));
  if (arguments.resume)
    inputs.push_back(checkpointPath(*arguments.resume));
  checkOutputs(arguments, program, inputs);
  if (arguments.exportTo)
    InputFile{besideExecutable(program.exportTemplate)};
  if (arguments.checkpoint)
    OutputFile{checkpointPath(*arguments.checkpoint)};
  for (const auto &path : {arguments.exportTo, arguments.trace, arguments.dumpGradients, arguments.profileOut})
    if (path)
      OutputFile{*path};
  if (arguments.log)
    log.open(*arguments.log);
}

Recording train(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                TrainingFiles &files, RunState run) {
  return Trainer(session, program, entry, arguments, files, run).runAll();
}

} // namespace sluice
