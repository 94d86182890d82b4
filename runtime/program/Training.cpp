// SPDX-License-Identifier: Apache-2.0
// A loss that is not finite ends the run before anything is written, so the last checkpoint is from before.

#include "runtime/program/Training.h"

#include "runtime/Codec.h"
#include "runtime/Kernels.h"
#include "runtime/Printable.h"
#include "runtime/program/Batches.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Evaluations.h"
#include "runtime/program/Generate.h"
#include "runtime/program/GradientDump.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Outputs.h"
#include "runtime/program/Predict.h"
#include "runtime/program/Progress.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/RunReport.h"
#include "runtime/program/SharedStates.h"
#include "runtime/program/Step.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace sluice {

namespace {

class Trainer {
public:
  Trainer(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
          TrainingFiles &files, RunState run)
      : session(session), program(program), entry(entry), arguments(arguments), files(files), run(run),
        report(arguments.report ? std::make_unique<RunReport>() : nullptr),
        checkpoints(arguments.checkpoint && arguments.leads
                        ? std::make_unique<CheckpointWriter>(
                              session, program, *arguments.checkpoint, arguments.keepCheckpoints.value_or(1),
                              files.training ? recipeOf(arguments, wordsOf(program, files.classes)) : "",
                              arguments.checkpointTrainedOnly, leavesFormerRun(arguments))
                        : nullptr),
        evaluations(session, program, entry, arguments, files, report.get(), checkpoints.get(), this->run),
        step(session, program, entry, arguments, [this](const StepResult &result) { stepDone(result); }) {
    times.batches = step.batches(), times.ranks = step.units() / step.batches();
  }

  Recording runAll();

private:
  void loop();
  void guarded(const std::function<void()> &work) const;
  bool runsAhead(bool epochEnds) const;
  void stepDone(const StepResult &result);
  void beginExtras();
  void endExtras(bool lastStep);
  bool recordsAll() const { return arguments.trace || arguments.profileOut || arguments.roofline; }
  int64_t lastStep() const;
  bool checkpointIsDue(bool epochEnds) const;
  void saveCheckpoint();
  void finishCheckpoints();
  void sayHowToGoOn() const;
  void loopAndSave();
  void tellStep(const StepResult &result);
  void endLoop();
  void logStart() const;
  void logEnd() const;
  std::string lastSaved() const;
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
  StepTimes times;
  int64_t stepsDone = 0;    ///< by this run
  int64_t emptyBatches = 0; ///< of this run, in which no target counted
  std::unique_ptr<GradientDump> gradients;
  std::vector<OpRecord> traced, profiled;
  int64_t profiledSteps = 0;
  Metadata saved;       ///< of the newest checkpoint; empty: none
  bool isFinite = true; ///< all losses so far
  int64_t last = 0;     ///< step of the run
  std::unique_ptr<Progress> progress;
};

/// Number of the step that ends the run: --steps, or the last whole step of epoch --epochs (default 1).
int64_t Trainer::lastStep() const {
  if (arguments.steps)
    return *arguments.steps;
  Position position = files.training->normalize(run.position);
  int64_t epochs = arguments.epochs.value_or(1), perEpoch = files.training->batches(), left = 0, last = 0;
  if (position.epoch >= epochs)
    return run.step;
  if (__builtin_mul_overflow(epochs - position.epoch, perEpoch, &left) ||
      __builtin_add_overflow(run.step, (left - position.sample / program.batch) / step.units(), &last))
    throw UsageError(text("--epochs ", epochs, " of ", perEpoch, " steps are more steps than can be counted"));
  return last;
}

void Trainer::logStart() const {
  LogFields fields = {{"model", program.model},
                      {"strategy", program.strategy},
                      {"device_bytes", uint64_t{program.deviceBytes}},
                      {"host_bytes", uint64_t{program.hostBytes}},
                      {"device_base_bytes", uint64_t{program.deviceBase}},
                      {"predicted_ms", times.predicted(program) * 1e3},
                      {"batch", program.batch},
                      {"threads", int64_t{threads()}},
                      {"seed", run.seed},
                      {"first_step", run.step + 1}};
  step.describeAll(fields, files.training.get());
  files.tellHyperparameters(fields, arguments);
  const std::vector<int> targets = namedTargets(program);
  for (const int target : targets)
    if (const std::vector<std::string> names = namesOf(program, target, files.classes); !names.empty())
      fields.push_back({targets.size() > 1 ? text(program.inputs[target].name, ".classes") : "classes", names});
  if (checkpoints)
    fields.push_back({"checkpoint_bytes", uint64_t{checkpointCopyBytes(program, arguments.checkpointTrainedOnly)}});
  files.log.write("start", fields);
}

void Trainer::logEnd() const {
  LogFields fields = endFields(program, session, stepsDone, times);
  files.describeSkipped(fields);
  if (emptyBatches > 0)
    fields.push_back({"batches_without_targets", emptyBatches});
  files.log.write("end", fields);
}

std::string Trainer::lastSaved() const {
  if (!checkpoints)
    return arguments.checkpoint ? "rank 0 keeps the checkpoints" : "no checkpoint was asked for";
  const int64_t step = checkpoints->lastWritten();
  return step >= 0 ? text("the last checkpoint in ", *arguments.checkpoint, " is from step ", step)
                   : "this run wrote no checkpoint yet";
}

bool Trainer::checkpointIsDue(bool epochEnds) const {
  if (arguments.checkpointEvery)
    return run.step % *arguments.checkpointEvery == 0;
  return epochEnds && *arguments.data != syntheticData; // whose epochs are a few steps long and mean nothing
}

void Trainer::saveCheckpoint() {
  if (Metadata now = metadataOf(program, run); arguments.checkpoint && saved != now) {
    withShares(session, program, [this] { checkpoints->save(run); });
    saved = std::move(now);
  }
}

/// To whoever wants to know of every step.
void Trainer::tellStep(const StepResult &result) {
  const double samples = static_cast<double>(program.batch * step.units());
  StepFacts facts = {result.step, double{result.loss}, shortest(result.learningRate), result.seconds,
                     samples / std::max(1e-9, result.seconds)};
  facts.parts = result.parts, facts.isOfTurn = program.turnCount > 0;
  LogFields fields = {{"step", result.step}, {"loss", facts.loss}};
  step.describe(result, fields);
  fields.push_back({"ms", result.seconds * 1e3});
  fields.push_back({"data_wait_ms", result.waitedSeconds * 1e3});
  fields.push_back({"samples_per_second", facts.samplesPerSecond});
  fields.push_back({"epoch", result.epoch + 1});
  files.log.write("step", fields);
  files.events.write(result.step, facts.scalars());
  if (report)
    report->addStep(facts);
}

/// What follows from a step that has ended, whatever runs already.
void Trainer::stepDone(const StepResult &result) {
  isFinite = std::isfinite(result.loss);
  ++stepsDone;
  if (result.emptyBatches > 0 && emptyBatches == 0 && arguments.leads)
    warnOfEmptyBatch(arguments.name, program, result.step);
  emptyBatches += result.emptyBatches;
  if (times.seconds.size() < timedSteps)
    times.seconds.push_back(result.seconds);
  tellStep(result);
  if (!isFinite) {
    if (step.isSettled())
      endExtras(result.step == last);
    progress->endLine();
    throw LossNotFinite(text("the ", result.name, " is ", result.loss, " at step ", result.step, "; ", lastSaved()));
  }
  progress->step(result.step, result.epoch, {result.name, result.loss}, result.learningRate, result.epochEnds);
}

/// Whether nothing is to be done between the step that was enqueued last and the next one.
bool Trainer::runsAhead(bool epochEnds) const {
  return !checkpointIsDue(epochEnds) && !evaluations.isDue(run.step, epochEnds) && !interruptedBy();
}

/// --patience may end a run before its last step.
void Trainer::endLoop() {
  progress->endLine();
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
  const bool saved = checkpoints && files.training;
  sayLast(text("interrupted after step ", run.step, "; ",
               saved ? "go on with: " + commandByRecipe(arguments, *arguments.checkpoint)
                     : "nothing was saved: no --checkpoint was given"));
}

/// What only the first steps of a run do.
void Trainer::beginExtras() {
  if (arguments.dumpGradients)
    gradients = std::make_unique<GradientDump>(session);
  session.enableRecording(recordsAll() || report || program.actionRows > 0, arguments.profileOut.has_value());
}

void Trainer::endExtras(bool last) {
  if (gradients) {
    gradients->save(*arguments.dumpGradients);
    gradients.reset();
  }
  const int64_t recorded = recordsAll() ? recordedSteps : reportedSteps;
  if ((!recordsAll() && !report && program.actionRows == 0) || stepsDone > recorded)
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

/// Errors of steps also say which one and what was saved.
void Trainer::guarded(const std::function<void()> &work) const {
  const auto where = [this](const std::exception &error) {
    return text(error.what(), ", at step ", step.current(), "; ", lastSaved());
  };
  try {
    work();
  } catch (const ValueNotStorable &error) {
    throw LossNotFinite(where(error));
  } catch (const MemoryNotAvailable &error) {
    throw MemoryNotAvailable(where(error));
  } catch (const DeviceError &error) {
    throw DeviceError(where(error));
  }
}

void Trainer::loop() {
  Batches batches(session, program, *files.training);
  last = lastStep();
  printWhatIsTrained(program, *files.training, arguments, run.step, last, step.units() / step.batches());
  progress = std::make_unique<Progress>(run.step + 1, last, program.batch * step.units());
  run.position = files.training->normalize(run.position);
  if (run.evaluationDue) // the run ended between a checkpoint and its evaluation
    evaluations.run(run);
  if (run.step < last) {
    beginExtras();
    batches.prefetchAlone(step.first(run.position, *files.training));
  }
  while (run.step < last && !interruptedBy() && !evaluations.isOver()) {
    const int64_t epoch = run.position.epoch;
    guarded(
        [&] { step(batches, *files.training, run, last, [this](bool epochEnds) { return runsAhead(epochEnds); }); });
    if (step.isSettled())
      endExtras(run.step == last);
    if (checkpoints)
      checkpoints->check();
    const bool epochEnds = run.position.epoch != epoch;
    run.evaluationDue = evaluations.isDue(run.step, epochEnds);
    if (checkpointIsDue(epochEnds))
      saveCheckpoint();
    if (run.evaluationDue) {
      progress->endLine();
      evaluations.run(run);
      if (run.step < last)
        batches.prefetchAlone(step.first(run.position, *files.training));
      session.synchronize();
      session.takeRecords(); // the evaluation's ops are none of a step
    }
  }
  guarded([&] { step.settle(batches); }); // an interrupted run
  endLoop();
}

/// The steps that were done are not lost with a log, say, that takes no more.
void Trainer::loopAndSave() {
  try {
    if (files.training)
      loop();
  } catch (const DataError &) {
    try {
      if (isFinite && step.settleQuietly() && !session.sharesStates) // others, which have shares, go on
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
  if (!interruptedBy() && (arguments.exportTo || files.prediction || files.prompts))
    evaluations.tellBetter(run.step);
  if (!interruptedBy() && files.prediction)
    predict(arguments.leads ? *arguments.output : "", session, program, entry, *files.prediction,
            {files.classes, files.maskValues});
  if (!interruptedBy() && files.prompts)
    generate(arguments, session, program, entry, *files.prompts, run.seed, files.log);
  if (interruptedBy())
    sayHowToGoOn();
  logEnd();
  files.printSkipped();
  printReport(program, session, times);
  const std::vector<MeasuredAction> actions = measureActions(program, profiled, profiledSteps, times.batches);
  printActions(program, session, actions, stepsDone);
  if (report)
    report->write(*arguments.report, program, session, commandOf(arguments), files.classes, times, actions);
  if (const int signal = interruptedBy())
    throw Interrupted{signal};
  return {std::move(profiled), profiledSteps, times.medianOf(recordedSteps)};
}

} // namespace

Recording train(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                TrainingFiles &files, RunState run) {
  return Trainer(session, program, entry, arguments, files, run).runAll();
}

} // namespace sluice
