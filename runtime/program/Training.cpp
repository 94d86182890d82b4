// SPDX-License-Identifier: Apache-2.0
// A loss that is not finite ends the run before anything is written, so the last checkpoint is from before.

#include "runtime/program/Training.h"

#include "runtime/program/Batches.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/Evaluations.h"
#include "runtime/program/GradientDump.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Predict.h"
#include "runtime/program/Progress.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/RunReport.h"
#include "runtime/program/Step.h"

#include "runtime/Codec.h"
#include "runtime/Kernels.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace sluice {

namespace {

class Trainer {
public:
  Trainer(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
          TrainingFiles &files, RunState run)
      : session(session), program(program), entry(entry), arguments(arguments), files(files), run(run),
        report(arguments.report ? std::make_unique<RunReport>() : nullptr),
        checkpoints(arguments.checkpoint ? std::make_unique<CheckpointWriter>(session, program, *arguments.checkpoint,
                                                                              arguments.keepCheckpoints.value_or(1),
                                                                              files.training ? recipeOf(arguments) : "")
                                         : nullptr),
        evaluations(session, program, entry, arguments, files, report.get(), checkpoints.get(), this->run),
        step(session, program, entry, arguments) {}

  Recording runAll();

private:
  void loop();
  float oneStep(Batches &batches, int64_t last);
  void sayWhatIsTrained(int64_t last) const;
  void beginExtras();
  void endExtras(bool lastStep);
  int64_t lastStep() const;
  bool checkpointIsDue(bool epochEnds) const;
  void saveCheckpoint();
  void finishCheckpoints();
  void sayHowToGoOn() const;
  void loopAndSave();
  void tellStep(int64_t epoch, float loss, double seconds);
  void endLoop(Progress &progress);
  void predictAll();
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
  std::unique_ptr<RunReport> report;             ///< null where none is asked for
  std::unique_ptr<CheckpointWriter> checkpoints; ///< null without --checkpoint
  Evaluations evaluations;
  Step step;

  static constexpr size_t timedSteps = 100000; ///< enough for a median, little enough to keep
  std::vector<double> stepSeconds;
  int64_t stepsDone = 0; ///< by this run
  std::unique_ptr<GradientDump> gradients;
  std::vector<OpRecord> traced, profiled;
  int64_t profiledSteps = 0;
  Metadata saved;           ///< of the newest checkpoint; empty: none
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
                  __builtin_add_overflow(run.step, (left - position.sample / program.batch) / step.batches(), &last);
  if (overflow)
    throw UsageError(text("--epochs ", epochs, " of ", perEpoch, " steps are more steps than can be counted"));
  return last;
}

void Trainer::logStart() const {
  LogFields fields = {{"model", program.model},
                      {"strategy", program.strategy},
                      {"device_bytes", uint64_t{program.deviceBytes}},
                      {"host_bytes", uint64_t{program.hostBytes}},
                      {"device_base_bytes", uint64_t{program.deviceBase}},
                      {"predicted_ms", program.predictedSecondsPerStep * 1e3},
                      {"batch", program.batch},
                      {"threads", int64_t{threads()}},
                      {"seed", run.seed},
                      {"first_step", run.step + 1}};
  step.describeAll(fields, files.training.get());
  if (checkpoints)
    fields.push_back({"checkpoint_bytes", uint64_t{checkpointCopyBytes(program)}});
  files.log.write("start", fields);
}

void Trainer::logEnd() const {
  LogFields fields = endFields(program, session, stepsDone, medianStep(stepSeconds));
  for (const Dataset *data : {files.training.get(), files.evaluation.get()})
    if (data && data->skipped() > 0)
      fields.push_back(
          {data == files.training.get() ? "skipped_samples" : "skipped_evaluation_samples", data->skipped()});
  files.log.write("end", fields);
}

std::string Trainer::lastSaved() const {
  if (!arguments.checkpoint)
    return "no checkpoint was asked for";
  const int64_t step = checkpoints->lastWritten();
  return step >= 0 ? text("the last checkpoint in ", *arguments.checkpoint, " is from step ", step)
                   : "this run wrote no checkpoint yet";
}

void Trainer::failOnLoss(float loss) const {
  throw LossNotFinite(text("the loss is ", loss, " at step ", run.step, "; ", lastSaved()));
}

/// Epochs of synthetic data are a few steps long and mean nothing.
bool Trainer::checkpointIsDue(bool epochEnds) const {
  if (arguments.checkpointEvery)
    return run.step % *arguments.checkpointEvery == 0;
  return epochEnds && *arguments.data != syntheticData;
}

void Trainer::saveCheckpoint() {
  Metadata now = metadataOf(program, run);
  if (!checkpoints || saved == now)
    return;
  checkpoints->save(run);
  saved = std::move(now);
}

void Trainer::predictAll() {
  if (files.prediction && predict(*arguments.output, session, program, entry, *files.prediction))
    std::printf("predictions:   %lld samples in %s\n", static_cast<long long>(files.prediction->samples()),
                printable(*arguments.output).c_str());
}

/// To whoever wants to know of every step.
void Trainer::tellStep(int64_t epoch, float loss, double seconds) {
  const double samples = static_cast<double>(program.batch * step.batches());
  const StepFacts facts = {run.step, double{loss}, shortest(session.state.learningRate), seconds,
                           samples / std::max(1e-9, seconds)};
  LogFields fields = {{"step", run.step}, {"loss", facts.loss}};
  step.describe(fields);
  const LogFields times = {{"ms", seconds * 1e3},
                           {"data_wait_ms", step.waitedSeconds() * 1e3},
                           {"samples_per_second", facts.samplesPerSecond},
                           {"epoch", epoch + 1}};
  fields.insert(fields.end(), times.begin(), times.end());
  files.log.write("step", fields);
  files.events.write(run.step, {{"train/loss", facts.loss},
                                {"train/lr", facts.learningRate},
                                {"train/samples_per_second", facts.samplesPerSecond}});
  if (report)
    report->addStep(facts);
}

/// --patience may end a run before its last step.
void Trainer::endLoop(Progress &progress) {
  progress.endLine();
  if (evaluations.isOver())
    std::printf("ended after step %lld: %s\n", static_cast<long long>(run.step), evaluations.whyOver().c_str());
}

/// All that was saved is on the disk.
void Trainer::finishCheckpoints() {
  if (checkpoints)
    checkpoints->finish();
}

/// What whoever interrupted the run may want to know.
void Trainer::sayHowToGoOn() const {
  std::printf("interrupted after step %lld; %s%s\n", static_cast<long long>(run.step),
              checkpoints && files.training ? "go on with: " : "nothing was saved: no --checkpoint was given",
              checkpoints && files.training ? printable(commandByRecipe(arguments, *arguments.checkpoint)).c_str()
                                            : "");
}

/// What only the first steps of a run do.
void Trainer::beginExtras() {
  if (arguments.dumpGradients)
    gradients = std::make_unique<GradientDump>(session);
  session.enableRecording(arguments.trace || arguments.profileOut || report || program.actionRows > 0,
                          arguments.profileOut.has_value());
}

void Trainer::endExtras(bool last) {
  if (gradients) {
    gradients->save(*arguments.dumpGradients);
    gradients.reset();
  }
  const bool wanted = arguments.trace || arguments.profileOut;
  const int64_t recorded = wanted ? recordedSteps : reportedSteps;
  if ((!wanted && !report && program.actionRows == 0) || stepsDone > recorded)
    return;
  std::vector<OpRecord> records = session.takeRecords();
  if (report)
    report->setTimeline(records);
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

/// As Step says. Errors also say what was saved.
float Trainer::oneStep(Batches &batches, int64_t last) {
  try {
    return step(batches, *files.training, run, last);
  } catch (const ValueNotStorable &error) {
    throw LossNotFinite(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  } catch (const MemoryNotAvailable &error) {
    throw MemoryNotAvailable(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  } catch (const DeviceError &error) {
    throw DeviceError(text(error.what(), ", at step ", run.step, "; ", lastSaved()));
  }
}

/// Says what an epoch leaves out and whether there is anything to do.
void Trainer::sayWhatIsTrained(int64_t last) const {
  if (run.step >= last)
    std::printf("nothing to train: step %lld is done, the run ends at step %lld\n", static_cast<long long>(run.step),
                static_cast<long long>(last));
  if (step.batches() > 1)
    std::printf("each step has %lld batches of %lld samples\n", static_cast<long long>(step.batches()),
                static_cast<long long>(program.batch));
  if (int64_t dropped = files.training->dropped())
    std::printf("%lld of %lld samples are left out of every epoch: they do not fill a batch of %lld\n",
                static_cast<long long>(dropped), static_cast<long long>(files.training->samples()),
                static_cast<long long>(program.batch));
}

void Trainer::loop() {
  Batches batches(session, program, *files.training);
  int64_t last = lastStep();
  sayWhatIsTrained(last);
  Progress progress(run.step + 1, last, program.batch * step.batches());
  run.position = files.training->normalize(run.position);
  if (run.evaluationDue) // the run ended between a checkpoint and its evaluation
    evaluations.run(run);
  if (run.step < last) {
    beginExtras();
    batches.prefetch(run.position);
    session.synchronize();
  }
  while (run.step < last && !interruptedBy() && !evaluations.isOver()) {
    auto begin = std::chrono::steady_clock::now();
    Position current = run.position;
    stepIsWhole = false;
    float loss = oneStep(batches, last);
    stepIsWhole = std::isfinite(loss);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++stepsDone;
    if (stepSeconds.size() < timedSteps)
      stepSeconds.push_back(seconds);
    tellStep(current.epoch, loss, seconds);
    endExtras(run.step == last);
    if (!stepIsWhole) {
      progress.endLine();
      failOnLoss(loss);
    }
    bool epochEnds = run.position.epoch != current.epoch;
    progress.step(run.step, current.epoch, loss, session.state.learningRate, epochEnds);
    if (checkpoints)
      checkpoints->check();
    run.evaluationDue = evaluations.isDue(run.step, epochEnds);
    if (checkpointIsDue(epochEnds))
      saveCheckpoint();
    if (run.evaluationDue) {
      progress.endLine();
      evaluations.run(run);
      if (run.step < last)
        batches.prefetch(run.position);
      session.synchronize();
    }
  }
  endLoop(progress);
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
      finishCheckpoints();
    } catch (const DataError &) {
      // The first error is the one to tell.
    }
    throw;
  }
  saveCheckpoint();
  finishCheckpoints();
}

Recording Trainer::runAll() {
  logStart();
  loopAndSave();
  if (!interruptedBy())
    evaluations.run(run);
  saveCheckpoint(); // what the evaluation has changed
  finishCheckpoints();
  if (!interruptedBy())
    predictAll();
  if (interruptedBy())
    sayHowToGoOn();
  logEnd();
  for (const Dataset *data : {files.training.get(), files.evaluation.get()})
    if (data && data->skipped() > 0)
      std::printf("%lld of %lld %s samples were bad and skipped\n", static_cast<long long>(data->skipped()),
                  static_cast<long long>(data->samples()), data == files.training.get() ? "training" : "evaluation");
  printReport(program, session, stepSeconds);
  const std::vector<MeasuredAction> actions = measureActions(program, profiled, profiledSteps);
  printActions(program, session, actions, stepsDone);
  if (report)
    report->write(*arguments.report, program, session, stepSeconds, actions);
  if (const int signal = interruptedBy())
    throw Interrupted{signal};
  return {std::move(profiled), profiledSteps};
}

} // namespace

Recording train(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                TrainingFiles &files, RunState run) {
  return Trainer(session, program, entry, arguments, files, run).runAll();
}

} // namespace sluice
