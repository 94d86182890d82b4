// SPDX-License-Identifier: Apache-2.0
// The best checkpoint is a checkpoint like any other, in a file of its own, whose metadata say why it is the best.

#include "runtime/program/Evaluations.h"

#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/RunReport.h"

#include <cstdio>
#include <filesystem>

namespace sluice {

/// What a former part of this run has kept as the best, if its metric was the same.
static void restore(Selection &selection, const std::string &path, const Program &program) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return;
  const SafetensorsFile file(path);
  checkIdentity(file, program);
  auto word = [&](const char *key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  double value = 0;
  int64_t step = 0;
  if (word("best_metric") == metricName(selection.metric) && parseNumber(word("best_value"), value) &&
      parseNumber(word("step"), step))
    selection.restore(value, step);
}

Evaluations::Evaluations(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                         TrainingFiles &files, RunReport *report, CheckpointWriter *checkpoints)
    : session(session), program(program), entry(entry), arguments(arguments), files(files), report(report),
      checkpoints(checkpoints) {
  if (!arguments.best && !arguments.patience)
    return;
  selection.emplace(files.metrics->find("--best", arguments.best.value_or("loss")), arguments.patience);
  if (arguments.best && arguments.resume &&
      isSameFile(resumedPath(*arguments.resume), checkpointPath(*arguments.checkpoint)))
    restore(*selection, bestPath(*arguments.checkpoint), program);
}

bool Evaluations::isDue(int64_t step, bool epochEnds) const {
  return files.evaluation && (epochEnds || (arguments.evaluateEvery && step % *arguments.evaluateEvery == 0));
}

void Evaluations::run(const RunState &state) {
  if (!files.evaluation || evaluatedStep == state.step)
    return;
  const std::optional<Evaluation> result = evaluate(session, program, entry, *files.evaluation, *files.metrics);
  if (!result)
    return;
  evaluatedStep = state.step;
  tell(state, *result);
  keepBest(state, *result);
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
  std::printf(" on %lld samples\n%s", static_cast<long long>(result.samples), confusionText(result.confusion).c_str());
  std::fflush(stdout);
  if (!result.confusion.empty())
    fields.push_back({"confusion", result.confusion});
  fields.push_back({"samples", result.samples});
  files.log.write("evaluate", fields);
  files.events.write(state.step, scalars);
  if (report)
    report->addEvaluation(state.step, result);
}

void Evaluations::keepBest(const RunState &state, const Evaluation &result) {
  if (!selection || !selection->take(result.values, state.step) || !arguments.best)
    return;
  const double value = *selection->best;
  checkpoints->saveBest(state, {{"best_metric", metricName(selection->metric)}, {"best_value", exactText(value)}});
  std::printf("best %s so far: kept in %s\n", metricName(selection->metric),
              printable(bestPath(*arguments.checkpoint)).c_str());
}

} // namespace sluice
