// SPDX-License-Identifier: Apache-2.0
// Opens what a run reads, and tries what it writes, in an order that leaves nothing behind where something is wrong.

#include "runtime/program/Training.h"

#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Export.h"
#include "runtime/program/Flags.h"
#include "runtime/program/Outputs.h"
#include "runtime/program/Predict.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Schedule.h"
#include "runtime/program/WeightNames.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace sluice {

void TrainingFiles::describeSkipped(LogFields &fields) const {
  if (training && training->skipped() > 0)
    fields.push_back({"skipped_samples", training->skipped()});
  if (evaluation && evaluation->skipped() > 0)
    fields.push_back({"skipped_evaluation_samples", evaluation->skipped()});
  if (prediction && prediction->skipped() > 0)
    fields.push_back({"skipped_prediction_samples", prediction->skipped()});
  for (const auto &[data, name] :
       {std::pair{training.get(), "padding_percent"}, {evaluation.get(), "evaluation_padding_percent"}})
    if (data && data->filled().all > 0)
      fields.push_back({name, data->filled().paddingPercent()});
}

void TrainingFiles::printSkipped() const {
  for (const auto &[data, what] : {std::pair{training.get(), "training samples were bad and replaced by others"},
                                   {evaluation.get(), "evaluation samples were bad and left out"},
                                   {prediction.get(), "samples to predict were bad and left out"}})
    if (data && data->skipped() > 0)
      std::printf("%lld of %lld %s\n", static_cast<long long>(data->skipped()),
                  static_cast<long long>(data->samplesWithBad()), what);
  for (const auto &[data, what] : {std::pair{training.get(), "training"}, {evaluation.get(), "evaluation"}})
    if (data && data->filled().all > 0)
      std::printf("padding:       %.2f %% of what %s read\n", data->filled().paddingPercent(), what);
}

void TrainingFiles::printNotes(const std::string &name) const {
  tellNotes([&](const std::string &line, bool warns) {
    if (warns)
      std::fprintf(stderr, "%s: warning: %s\n", printable(name).c_str(), printable(line).c_str());
    else
      std::printf("data:          %s\n", printable(line).c_str());
  });
}

void TrainingFiles::tellHyperparameters(const LogFields &start, const Arguments &arguments) {
  static const std::set<std::string> ofOtherThings = {"host_bytes", "device_base_bytes", "predicted_ms",
                                                      "threads",    "first_step",        "dropped_samples",
                                                      "class",      "metrics",           "quiet"};
  std::vector<std::pair<std::string, LogValue>> fields;
  std::set<std::string> told;
  for (const auto &field : start)
    if (!ofOtherThings.count(field.first)) {
      fields.push_back(field);
      told.insert(field.first);
    }
  std::map<std::string, std::string> given; // all words of a flag
  for (const auto &[name, value] : givenFlags(arguments)) {
    const Flag &flag = *findFlag(name);
    std::string key = flag.name + 2;
    std::replace(key.begin(), key.end(), '-', '_');
    if (flag.holdsPath() || isAboutOneStart(flag) || ofOtherThings.count(key) || told.count(key))
      continue;
    std::string &words = given[key];
    words += (words.empty() ? "" : ", ") + (flag.value ? value : "true");
  }
  for (const auto &[key, words] : given) {
    double number = 0;
    fields.push_back({key, parseNumber(words, number) ? LogValue(number) : LogValue(words)});
  }
  events.writeHyperparameters(fields);
}

TrainingFiles::TrainingFiles(const Arguments &arguments, const Program &program, const Entry &entry,
                             const RunState &run, const std::vector<std::string> &weights)
    : DataSets(arguments, program, run.seed) {
  std::vector<std::string> inputs = {"/proc/self/exe"};
  if (arguments.generate) {
    prompts = std::make_unique<Prompts>(*arguments.generate, dataOptions(arguments, run.seed), program,
                                        tokenPlaces(program, entry));
    inputs.push_back(*arguments.generate);
  }
  for (const auto &data : {training.get(), evaluation.get(), prediction.get()})
    if (data)
      for (const std::string &path : data->paths())
        inputs.push_back(path);
  for (const char *beside : {program.weightsFile, program.exportTemplate})
    if (beside)
      inputs.push_back(besideProgram(beside));
  if (arguments.resume)
    inputs.push_back(resumedPath(*arguments.resume));
  if (arguments.recipe)
    inputs.push_back(*arguments.recipe);
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  std::optional<std::string> exported;
  if (arguments.exportTo) {
    const WeightFile to(*arguments.exportTo);
    exported = to.path;
    if (to.map)
      inputs.push_back(*to.map);
    if (to.config && !to.config->empty())
      inputs.push_back(*to.config);
    checkExport(to, program);
  }
  checkOutputs(arguments, program, inputs);
  if (arguments.checkpoint && arguments.leads)
    OutputFile{checkpointPath(*arguments.checkpoint)};
  for (const auto &path :
       {exported, arguments.trace, arguments.dumpGradients, arguments.profileOut, arguments.output, arguments.report})
    if (!arguments.leads) // which writes none of them
      continue;
    else if (path && path == arguments.output && !arguments.generate && isMaskFolder(*path))
      OutputFolder(*path, maskFileMark());
    else if (path)
      OutputFile{*path};
  if (arguments.tensorboard)
    events.open(*arguments.tensorboard);
  using Resumed = Log::Resumed;
  if (arguments.log)
    log.open(*arguments.log, arguments.resume ? std::optional(Resumed{program.model, run.seed, run.step,
                                                                      training != nullptr, run.evaluationDue})
                                              : std::nullopt);
}

} // namespace sluice
