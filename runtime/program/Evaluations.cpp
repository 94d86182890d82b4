// SPDX-License-Identifier: Apache-2.0
// The best checkpoint is a checkpoint like any other, in a file of its own. All of them say where the selection stands.

#include "runtime/program/Evaluations.h"

#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/ConfusionImage.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/RunReport.h"
#include "runtime/program/Schedule.h"

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
  if (!arguments.best && !arguments.patience)
    return;
  selection.emplace(files.metrics->find("--best", arguments.best.value_or("loss")), arguments.patience);
  // Without the file of the best state, the next one is the best.
  const bool goesOn =
      !arguments.best || (isSameFile(parentFolder(resumedPath(arguments.resume.value_or(""))), *arguments.checkpoint) &&
                          isRegularFile(bestPath(*arguments.checkpoint)));
  if (arguments.resume && goesOn && from.metric == metricName(selection->metric))
    selection->standing = from.standing;
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
  state.evaluationDue = false;
  tell(state, *result);
  schedule(state, *result);
  select(state, *result);
}

void Evaluations::tell(const RunState &state, const Evaluation &result) {
  LogFields fields = {{"step", state.step}};
  std::vector<std::pair<std::string, double>> scalars;
  std::printf("evaluation after step %lld:", static_cast<long long>(state.step));
  const char *separator = " ";
  for (const auto &[metric, value] : result.values) {
    fields.push_back({metricName(metric), value});
    scalars.push_back({text("evaluation/", metricName(metric)), value});
    std::printf(moreIsBetter(metric) ? "%s%s %.4f" : "%s%s %.6g", separator, metricName(metric), value);
    separator = ", ";
  }
  std::printf(" on %lld samples\n%s%s", static_cast<long long>(result.samples),
              hitsText(result.hits, files.classes).c_str(), confusionText(result.confusion, files.classes).c_str());
  std::fflush(stdout);
  for (const auto &[key, value] : {std::pair{"precision_by_class", &Hits::precision},
                                   {"recall_by_class", &Hits::recall},
                                   {"f1_by_class", &Hits::f1}})
    if (!result.hits.empty()) {
      std::vector<double> list;
      for (const Hits &hits : result.hits)
        list.push_back((hits.*value)());
      fields.push_back({key, list});
    }
  if (!result.confusion.empty())
    fields.push_back({"confusion", result.confusion});
  fields.push_back({"samples", result.samples});
  files.log.write("evaluate", fields);
  files.events.write(state.step, scalars);
  if (files.events.isOpen() && !result.confusion.empty())
    files.events.writeImage(state.step, "evaluation/confusion", confusionImage(result.confusion),
                            confusionCaption(result.confusion, files.classes));
  if (report)
    report->addEvaluation(state.step, result);
}

void Evaluations::schedule(RunState &state, const Evaluation &result) const {
  if (!plateau)
    return;
  const Metric metric = files.metrics->find("--schedule=plateau,metric", plateau->metric);
  const auto found = result.values.find(metric);
  const double value = found == result.values.end() ? std::nan("") : found->second;
  if (takePlateau(state.plateau, *plateau, value, moreIsBetter(metric)))
    std::printf("%s did not get better than %.6g: the rate is multiplied by %.6g\n", metricName(metric),
                state.plateau.best.value_or(0), plateau->factor);
}

void Evaluations::select(RunState &state, const Evaluation &result) {
  if (!selection)
    return;
  const bool better = selection->take(result.values, state.step);
  state.metric = metricName(selection->metric);
  state.standing = selection->standing;
  if (!better || !checkpoints) // what is waited for is kept, where there is a folder for it
    return;
  checkpoints->saveBest(state);
  std::printf("best %s so far: kept in %s\n", metricName(selection->metric),
              printable(bestPath(*arguments.checkpoint)).c_str());
}

} // namespace sluice
