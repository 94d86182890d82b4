// SPDX-License-Identifier: Apache-2.0
// Samples of files. While a step runs the next batch is gathered, as in a program.
#include "runtime/library/Model.h"

#include "runtime/program/ClassNames.h"
#include "runtime/program/Interrupt.h"

#include "nlohmann/json.hpp"

#include <algorithm>

namespace sluice {

FileData *Model::openData(const std::vector<std::string> &flags) {
  if (!openFiles)
    throw UsageError("this library was made without the formats of files: make it again with --data-formats");
  const OpenedFor how = {program, entry, run.preparation, run.step > 0, run.seed};
  fileData.push_back(openFiles(flags, how, [this](const std::string &line) { tell(line); }));
  return fileData.back().get();
}

FileData &Model::known(const FileData *data) const {
  for (const std::unique_ptr<FileData> &one : fileData)
    if (one.get() == data)
      return *one;
  throw UsageError("these are no open data of this model");
}

void Model::closeData(const FileData *data) {
  known(data);
  if (prefetched == data)
    forgetPrefetched();
  fileData.erase(std::find_if(fileData.begin(), fileData.end(), [&](const auto &one) { return one.get() == data; }));
}

void Model::forgetPrefetched() {
  if (prefetched)
    session->synchronize(); // its copy, which reads the staging slots
  prefetched = nullptr;
}

std::string Model::describeData(const FileData *data) const {
  const DataSets &sets = known(data).sets;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (sets.training)
    json["training"] = {{"samples", sets.training->samples()}, {"batches", sets.training->batches()}};
  if (sets.evaluation)
    json["evaluation"] = {{"samples", sets.evaluation->samples()}};
  if (sets.prediction)
    json["prediction"] = {{"samples", sets.prediction->samples()}};
  for (const int target : namedTargets(program))
    if (const std::vector<std::string> names = namesOf(program, target, sets.classes); !names.empty())
      json["classes"][program.inputs[target].name] = names;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The step of an error in the samples that were to be gathered beside it.
void Model::endStepBesideBadData(FileData &data, Position began, const DataError &error) {
  stepper->settleQuietly();
  const bool whole = run.position.epoch != began.epoch || run.position.sample != began.sample;
  if (whole)
    data.position = run.position;
  else
    broken = error.what();
  applyHyperparameters(); // those of evaluations among them
}

float Model::stepOn(const FileData *which, int64_t *epoch) {
  FileData &data = known(which);
  if (!data.sets.training)
    throw UsageError("these data were opened without --data, whose samples steps take");
  requireWhole();
  throwIfCancelled();
  Dataset &training = *data.sets.training;
  if (!data.batches)
    data.batches.emplace(*session, program, training);
  const Position began = training.normalize(data.position);
  run.position = began;
  if (prefetched != which) {
    forgetPrefetched();
    data.batches->prefetchAlone(stepper->first(began, training));
  }
  prefetched = nullptr;
  run.preparation = data.preparation;
  try {
    (*stepper)(*data.batches, training, run, run.step + 2, [](bool) { return false; });
  } catch (const DataError &error) {
    endStepBesideBadData(data, began, error);
    throw;
  } catch (...) {
    endStepThatFailed();
    throw;
  }
  prefetched = which;
  data.position = run.position;
  run.position = {};
  if (epoch)
    *epoch = began.epoch;
  return lastLoss;
}

std::string Model::evaluateOn(const FileData *which, double *loss) {
  FileData &data = known(which);
  if (!data.sets.evaluation)
    throw UsageError("these data were opened without --evaluate or --validation-split");
  requireWhole();
  throwIfCancelled();
  return evaluate(*data.sets.evaluation, *data.sets.metrics, loss);
}

void Model::predictOn(const FileData *which, const sluice_output *outputs, int count) {
  FileData &data = known(which);
  if (!data.sets.prediction)
    throw UsageError("these data were opened without --predict");
  requireWhole();
  throwIfCancelled();
  predict(*data.sets.prediction, outputs, count);
}

} // namespace sluice
