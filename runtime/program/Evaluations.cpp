// SPDX-License-Identifier: Apache-2.0
// The best checkpoint is a checkpoint like any other, in a file of its own. All of them say where the selection stands.

#include "runtime/program/Evaluations.h"

#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/ConfusionImage.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/RunReport.h"
#include "runtime/program/Schedule.h"
#include "runtime/program/SharedStates.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace sluice {

static bool isRegularFile(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Evaluations::Evaluations(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                         TrainingFiles &files, RunReport *report, CheckpointWriter *checkpoints, const RunState &from)
    : session(session), program(program), entry(entry), arguments(arguments), files(files), report(report),
      checkpoints(checkpoints) {
  if (const Schedule rates(arguments); rates.plateau() && files.metrics)
    plateau = *rates.plateau();
  if (arguments.resume)
    countedStep = from.step;
  if (!arguments.best && !arguments.patience)
    return;
  selection.emplace(files.metrics->find("--best", arguments.best.value_or("loss")), arguments.patience);
  // Without the file of the best state, the next one is the best.
  const bool goesOn =
      !arguments.best || (isSameFile(parentFolder(resumedPath(arguments.resume.value_or(""))), *arguments.checkpoint) &&
                          isRegularFile(bestPath(*arguments.checkpoint)));
  if (arguments.resume && goesOn && from.metric == selection->measure.name())
    selection->standing = from.standing;
  else
    countedStep = -1;
}

bool Evaluations::isDue(int64_t step, bool epochEnds) const {
  return files.evaluation && (epochEnds || (arguments.evaluateEvery && step % *arguments.evaluateEvery == 0));
}

void Evaluations::run(RunState &state) {
  if (!files.evaluation || evaluatedStep == state.step)
    return;
  const std::optional<Evaluation> result = evaluate(session, program, entry, *files.evaluation, *files.metrics);
  if (!result)
    return;
  evaluatedStep = state.step;
  // A run that goes on where it was measured already is told again, and counted once.
  const bool counts = state.step != countedStep || state.evaluationDue;
  state.evaluationDue = false;
  tell(state, *result);
  if (!counts)
    return;
  schedule(state, *result);
  select(state, *result);
}

void Evaluations::tell(const RunState &state, const Evaluation &result) {
  if (!arguments.leads)
    return;
  LogFields fields = {{"step", state.step}};
  std::vector<std::pair<std::string, double>> scalars;
  std::printf("evaluation after step %lld:", static_cast<long long>(state.step));
  const char *separator = " ";
  for (const auto &[measure, value] : result.values) {
    fields.push_back({measure.name(), value});
    scalars.push_back({text("evaluation/", measure.name()), value});
    std::printf(moreIsBetter(measure.metric) ? "%s%s %.4f" : "%s%s %.6g", separator, printable(measure.name()).c_str(),
                value);
    separator = ", ";
  }
  std::printf(" on %lld samples%s\n", static_cast<long long>(result.samples), leftOutText(result.leftOut).c_str());
  tellMissing(result);
  tellIncomplete(result);
  tellClasses(result, fields);
  std::fflush(stdout);
  fields.push_back({"samples", result.samples});
  if (result.leftOut > 0)
    fields.push_back({"skipped_samples", result.leftOut});
  files.log.write("evaluate", fields);
  files.events.write(state.step, scalars);
  for (const auto &[label, confusion] : result.confusions)
    if (files.events.isOpen())
      files.events.writeImage(state.step, text("evaluation/", label, label.empty() ? "" : ".", "confusion"),
                              confusionImage(confusion),
                              confusionCaption(confusion, namesFor(program, label, files.classes)));
  if (report)
    report->addEvaluation(state.step, result);
}

/// A metric that nothing can be made of has no value, which looks like one that was not asked for.
void Evaluations::tellMissing(const Evaluation &result) {
  for (const Measure &measure : files.metrics->all())
    if (measure.metric != Metric::Confusion && !result.values.count(measure) &&
        toldMissing.insert(measure.name()).second)
      std::fprintf(stderr, "%s: warning: %s cannot be computed on these data%s; this is told once\n",
                   printable(arguments.name).c_str(), printable(measure.name()).c_str(),
                   measure.metric == Metric::Auc  ? ": no class or label has samples with it and samples without"
                   : measure.metric == Metric::R2 ? ": it needs two samples"
                                                  : ": no target counts");
}

/// A loss that the model computes may mix the samples of a batch, as Dice over a batch does; a program cannot know.
void Evaluations::tellIncomplete(const Evaluation &result) {
  const int64_t rest = result.samples % program.batch;
  if (!program.otherMean || rest == 0 || toldIncomplete)
    return;
  toldIncomplete = true;
  std::fprintf(
      stderr,
      "%s: warning: the evaluation's last batch has %lld of %lld samples and is filled up, which counts for "
      "nothing where the model's loss is a mean over samples; a loss that mixes the samples of a batch is exact "
      "on multiples of %lld samples alone; this is told once\n",
      printable(arguments.name).c_str(), static_cast<long long>(rest), static_cast<long long>(program.batch),
      static_cast<long long>(program.batch));
}

/// Tables of the outputs that have some, to people and into the log.
void Evaluations::tellClasses(const Evaluation &result, LogFields &fields) const {
  const auto prefixOf = [](const std::string &label) { return label.empty() ? "" : label + "."; };
  const auto show = [](const std::string &label, const std::string &table) {
    if (!table.empty())
      std::printf("%s%s", label.empty() ? "" : text("  ", printable(label), ":\n").c_str(), table.c_str());
  };
  for (const auto &[label, classes] : result.hits) {
    show(label, hitsText(classes, namesFor(program, label, files.classes)));
    for (const auto &[key, value] : {std::pair{"precision_by_class", &Hits::precision},
                                     {"recall_by_class", &Hits::recall},
                                     {"f1_by_class", &Hits::f1},
                                     {"iou_by_class", &Hits::iou}}) {
      std::vector<double> list;
      for (const Hits &hits : classes)
        list.push_back((hits.*value)());
      fields.push_back({prefixOf(label) + key, list});
    }
  }
  for (const auto &[label, confusion] : result.confusions) {
    show(label, confusionText(confusion, namesFor(program, label, files.classes)));
    fields.push_back({prefixOf(label) + "confusion", confusion});
  }
}

void Evaluations::schedule(RunState &state, const Evaluation &result) const {
  if (!plateau)
    return;
  const Measure measure = files.metrics->find("--schedule=plateau,metric", plateau->metric);
  const auto found = result.values.find(measure);
  const double value = found == result.values.end() ? std::nan("") : found->second;
  if (takePlateau(state.plateau, *plateau, value, moreIsBetter(measure.metric)))
    std::printf("%s did not get better than %.6g: the rate is multiplied by %.6g\n", measure.name().c_str(),
                state.plateau.best.value_or(0), plateau->factor);
}

void Evaluations::tellBetter(int64_t step) const {
  if (!selection || !selection->standing.best || selection->standing.bestStep == step)
    return;
  const std::string kept = arguments.checkpoint ? text("--resume=", bestPath(*arguments.checkpoint), " brings back")
                                                : "was not kept: --checkpoint DIR keeps it";
  std::printf("what is written has the weights of step %lld; the best %s was that of step %lld, which %s\n",
              static_cast<long long>(step), selection->measure.name().c_str(),
              static_cast<long long>(selection->standing.bestStep), printable(kept).c_str());
}

void Evaluations::select(RunState &state, const Evaluation &result) {
  if (!selection)
    return;
  const bool better = selection->take(result.values, state.step);
  state.metric = selection->measure.name();
  state.standing = selection->standing;
  if (!better || !arguments.checkpoint) // what is waited for is kept, where there is a folder for it
    return;
  withShares(session, program, [&] { checkpoints->saveBest(state); });
  if (!checkpoints)
    return;
  std::printf("best %s so far: kept in %s\n", selection->measure.name().c_str(),
              printable(bestPath(*arguments.checkpoint)).c_str());
}

} // namespace sluice
