// SPDX-License-Identifier: Apache-2.0
// Checkpoints are untrusted when they are read: numbers are parsed strictly, tensors are matched by name, type and
// shape.

#include "runtime/program/Checkpoint.h"

#include "runtime/program/Arguments.h"
#include "runtime/program/TensorIO.h"

#include <charconv>

namespace sluice {

void checkIdentity(const SafetensorsFile &file, const Program &program) {
  const auto identity = file.metadata().find("identity"), model = file.metadata().find("model");
  if (program.identity && identity != file.metadata().end() && identity->second != program.identity)
    throw DataError(text(file.path(), ": belongs to another model: ", identity->second,
                         model == file.metadata().end() ? "" : text(" ('", model->second, "')"),
                         ", this program trains ", program.identity, " ('", program.model, "')"));
}

std::string checkpointPath(const std::string &folder) { return joinPath(folder, "checkpoint.safetensors"); }
std::string bestCheckpointPath(const std::string &folder) { return joinPath(folder, "best.safetensors"); }

static bool isSaved(const Variable &variable) {
  return variable.role != Role::Constant && variable.role != Role::Gradient;
}

void writeCheckpoint(const std::string &folder, Session &session, const Program &program, const RunState &state) {
  writeCheckpointFile(checkpointPath(folder), session, program, state, {});
}

void writeCheckpointFile(const std::string &path, Session &session, const Program &program, const RunState &state,
                         const Metadata &more) {
  Metadata metadata = {{"format", checkpointFormat},
                       {"model", program.model},
                       {"optimizer", optimizerName(program.optimizer)},
                       {"step", std::to_string(state.step)},
                       {"epoch", std::to_string(state.position.epoch)},
                       {"sample", std::to_string(state.position.sample)},
                       {"seed", std::to_string(state.seed)}};
  if (program.identity)
    metadata["identity"] = program.identity;
  metadata.insert(more.begin(), more.end());
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isSaved(variable))
      continue;
    const Tensor &tensor = variable.tensor;
    auto produce = [&session, &tensor](const TensorToWrite::Put &put) { readTensor(session, tensor, put); };
    tensors.push_back({variable.name, tensor.type, tensor.shape, produce});
  }
  writeSafetensors(path, metadata, tensors);
}

/// A non-negative whole number of the metadata.
template <typename Number> static Number readNumber(const SafetensorsFile &file, const char *key) {
  auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError(text(file.path(), ": not a checkpoint: its metadata lack '", key, "'"));
  const std::string &word = found->second;
  Number value = 0;
  auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || stop != word.data() + word.size() || !(value >= 0) ||
      (std::is_signed_v<Number> && value > Number(1) << 61))
    throw DataError(text(file.path(), ": '", key, "' is '", word, "', not a whole number of 0 or more"));
  return value;
}

SavedRun::SavedRun(const std::string &folder, const Program &program) : program(program), file(checkpointPath(folder)) {
  auto word = [&](const char *key) {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (word("format") != checkpointFormat)
    throw DataError(text(file.path(), ": not a checkpoint: its format is '", word("format"), "', expected '",
                         checkpointFormat, "'"));
  checkIdentity(file, program);
  if (word("optimizer") != optimizerName(program.optimizer))
    throw DataError(text(file.path(), ": was written with optimizer '", word("optimizer"), "', this program has '",
                         optimizerName(program.optimizer), "'"));
  saved.step = readNumber<int64_t>(file, "step");
  saved.position.epoch = readNumber<int64_t>(file, "epoch");
  saved.position.sample = readNumber<int64_t>(file, "sample");
  saved.seed = readNumber<uint64_t>(file, "seed");
}

void SavedRun::load(Session &session) const {
  for (int i = 0; i < program.variableCount; ++i)
    if (isSaved(program.variables[i]))
      file.find(program.variables[i].name, program.variables[i].tensor.type, program.variables[i].tensor.shape);
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isSaved(variable))
      continue;
    TensorReader reader(file, variable.name, variable.tensor.type, variable.tensor.shape);
    writeTensor(session, variable.tensor, [&](size_t first, void *to, size_t bytes) { reader.read(first, to, bytes); });
  }
  file.data().dropPages();
}

} // namespace sluice
