// SPDX-License-Identifier: Apache-2.0
// Checkpoints and weights, as programs write and read them.
#include "runtime/library/Model.h"

#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/Export.h"
#include "runtime/program/FolderLock.h"
#include "runtime/program/InitialWeights.h"
#include "runtime/program/Initialize.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/Outputs.h"

#include <vector>

namespace sluice {

/// What no output may replace.
std::vector<std::string> Model::files() const {
  std::vector<std::string> list;
  for (const char *name : {program.weightsFile, program.exportTemplate})
    if (name)
      list.push_back(besideProgram(name));
  for (const std::unique_ptr<FileData> &data : fileData)
    for (const auto *set : {&data->sets.training, &data->sets.evaluation, &data->sets.prediction})
      if (*set)
        for (const std::string &path : (*set)->paths())
          list.push_back(path);
  return list;
}

void Model::save(const std::string &folder) {
  requireWhole();
  checkCheckpointFolder(folder, program, files());
  const FolderLock lock(folder);
  CheckpointWriter writer(*session, program, folder, /*keep=*/1, /*recipe=*/"", /*trainedOnly=*/false,
                          /*anew=*/false);
  writer.save(run);
  writer.finish();
}

void Model::load(const std::string &path) {
  const SavedRun saved(resumedPath(path), program);
  session->forgetFailure(); // whatever a step has left, all is written anew
  saved.load(*session);
  run = saved.state();
  run.position = {}; // in data that are not the caller's
  run.samples = 0;
  run.data.clear();
  session->state.seed = run.seed;
  session->state.step = run.step;
  arguments.seed = run.seed;
  startLossScale(*session, program, arguments, saved.carriesLossScale());
  broken.clear();
  beginSteps();
}

void Model::init(const std::string &words) {
  const InitialWeights weights({words}, program);
  weights.load(*session);
  startDerived(*session, program, [&](const Variable &variable) { return weights.gives(variable); });
  const Preparation read = weights.preparation();
  if (!read.isEmpty())
    run.preparation = read;
  tell(weights.report(/*resumes=*/false));
}

void Model::exportTo(const std::string &words) {
  requireWhole();
  const WeightFile to(words);
  checkExport(to, program);
  checkExportFile(to, program, files());
  exportModel(words, *session, program, run.preparation);
}

} // namespace sluice
