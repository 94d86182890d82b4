// SPDX-License-Identifier: Apache-2.0
// Checkpoints are untrusted when they are read: numbers are parsed strictly, tensors are matched by name, type and
// shape.

#include "runtime/program/Checkpoint.h"

#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Log.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/SharedStates.h"
#include "runtime/program/Turns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace sluice {

void checkIdentity(const SafetensorsFile &file, const Program &program) {
  const auto identity = file.metadata().find("identity"), model = file.metadata().find("model");
  if (program.identity && identity != file.metadata().end() && identity->second != program.identity)
    throw DataError(text(file.path(), ": belongs to another model: ", identity->second,
                         model == file.metadata().end() ? "" : text(" ('", model->second, "')"),
                         ", this program trains ", program.identity, " ('", program.model, "')"));
}

/// Before forms were described all were symmetric.
void checkForm(const SafetensorsFile &file, const Variable &variable) {
  if (!variable.form)
    return;
  const auto said = file.metadata().find(formKey(variable.name));
  const std::string own = describe(variable.form);
  if (said == file.metadata().end() ? variable.form.coding != Coding::Symmetric : said->second != own)
    throw DataError(text(file.path(), ": '", variable.name, "' lies there in ",
                         said == file.metadata().end() ? "another form" : printable(said->second),
                         ", in this program in ", own, ": compile it with the same --frozen"));
}

std::string checkpointPath(const std::string &folder) { return joinPath(folder, "checkpoint.safetensors"); }

std::string resumedPath(const std::string &fileOrFolder) {
  std::error_code ignored;
  const std::filesystem::path path = fileOrFolder;
  // A file that is missing is said to be missing under its own name.
  const bool file = std::filesystem::is_regular_file(path, ignored) ||
                    (path.extension() == ".safetensors" && !std::filesystem::is_directory(path, ignored));
  return file ? fileOrFolder : checkpointPath(fileOrFolder);
}

Metadata metadataOf(const Program &program, const RunState &state) {
  Metadata metadata = {{"format", checkpointFormat},
                       {"model", program.model},
                       {"optimizer", optimizerName(program.optimizer)},
                       {"step", std::to_string(state.step)},
                       {"epoch", std::to_string(state.position.epoch)},
                       {"sample", std::to_string(state.position.sample)},
                       {"samples", std::to_string(state.samples)},
                       {"seed", std::to_string(state.seed)}};
  if (program.identity)
    metadata["identity"] = program.identity;
  if (program.turnCount > 0)
    metadata["turns"] = turnsText(program);
  if (!state.data.empty())
    metadata["data"] = state.data;
  if (!state.frozen.empty())
    metadata["frozen"] = state.frozen;
  if (state.evaluationDue)
    metadata["evaluation"] = "due";
  for (int i = 0; i < program.variableCount; ++i)
    if (const Variable &variable = program.variables[i]; variable.form && isSaved(variable, !state.frozen.empty()))
      metadata[formKey(variable.name)] = describe(variable.form);
  metadata.merge(metadataOf(state.preparation));
  if (state.plateau.best) {
    metadata["plateau_best"] = exactText(*state.plateau.best);
    metadata["plateau_waited"] = std::to_string(state.plateau.waited);
    metadata["plateau_cooling"] = std::to_string(state.plateau.cooling);
    metadata["plateau_reductions"] = std::to_string(state.plateau.reductions);
  }
  if (state.metric.empty())
    return metadata;
  metadata["best_metric"] = state.metric;
  metadata["best_step"] = std::to_string(state.standing.bestStep);
  metadata["evaluations_since"] = std::to_string(state.standing.waited);
  if (state.standing.best)
    metadata["best_value"] = exactText(*state.standing.best);
  return metadata;
}

/// A non-negative whole number of the metadata.
template <typename Number> static Number readNumber(const SafetensorsFile &file, const char *key) {
  auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError(text(file.path(), ": not a checkpoint: its metadata lack '", key, "'"));
  const std::string &word = found->second;
  Number value = 0;
  if (!parseNumber(word, value) || !(value >= 0) || (std::is_signed_v<Number> && value > Number(1) << 61))
    throw DataError(text(file.path(), ": '", key, "' is '", word, "', not a whole number of 0 or more"));
  return value;
}

SavedRun::SavedRun(const std::string &fileOrFolder, const Program &program)
    : program(program), file(resumedPath(fileOrFolder)) {
  auto word = [&](const char *key) {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (word("format") != checkpointFormat)
    throw DataError(text(file.path(), ": not a checkpoint that this program reads: its format is '",
                         printable(word("format")), "', expected '", checkpointFormat,
                         "'; those of a later Sluice need a "
                         "program of its sluicec"));
  checkIdentity(file, program);
  if (word("optimizer") != optimizerName(program.optimizer))
    throw DataError(text(file.path(), ": was written with optimizer '", word("optimizer"), "', this program has '",
                         optimizerName(program.optimizer), "'"));
  if (word("turns") != turnsText(program)) // which follow from the number of the step
    throw DataError(text(file.path(), ": was written by steps that take the turns '", printable(word("turns")),
                         "', this program's take '", turnsText(program), "': compile it with the same --turn"));
  saved.step = readNumber<int64_t>(file, "step");
  saved.position.epoch = readNumber<int64_t>(file, "epoch");
  saved.position.sample = readNumber<int64_t>(file, "sample");
  saved.seed = readNumber<uint64_t>(file, "seed");
  if (file.metadata().count("samples")) // older checkpoints do not say
    saved.samples = readNumber<int64_t>(file, "samples");
  saved.data = word("data");
  saved.frozen = word("frozen");
  saved.evaluationDue = word("evaluation") == "due";
  if (file.metadata().count("best_step")) {
    saved.metric = word("best_metric");
    saved.standing.bestStep = readNumber<int64_t>(file, "best_step");
    saved.standing.waited = readNumber<int64_t>(file, "evaluations_since");
    double best = 0;
    if (parseNumber(word("best_value"), best) && std::isfinite(best))
      saved.standing.best = best;
  }
  if (double best = 0; parseNumber(word("plateau_best"), best) && std::isfinite(best))
    saved.plateau = {best, readNumber<int64_t>(file, "plateau_waited"), readNumber<int64_t>(file, "plateau_cooling"),
                     readNumber<int64_t>(file, "plateau_reductions")};
  saved.preparation = readPreparation(file.metadata(), file.path());
  checkTensors();
  checkLossScale(file, program, saved.step);
}

bool SavedRun::isCarried(const Variable &variable) const {
  return isSaved(variable, !saved.frozen.empty()) && (carriesLossScale() || !belongsToLossScale(variable));
}

/// Damage is found before a run has touched any of its other files.
void SavedRun::checkTensors() const {
  std::vector<char> piece(size_t{1} << 20);
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isCarried(variable))
      continue;
    TensorReader reader(file, variable.name, variable.saved().type, variable.saved().shape);
    checkForm(file, variable);
    const size_t bytes = variable.saved().bytes();
    for (size_t at = 0; at < bytes; at += piece.size())
      reader.read(at, piece.data(), std::min(piece.size(), bytes - at));
  }
}

std::string frozenChecksum(Session &session, const Program &program) {
  Crc32c sum;
  for (int i = 0; i < program.variableCount; ++i)
    if (const Variable &variable = program.variables[i]; isModelTensor(variable) && !isTrained(variable)) {
      sum.add(variable.name, std::strlen(variable.name) + 1);
      readTensor(session, variable.tensor, [&](const void *data, size_t bytes) { sum.add(data, bytes); });
    }
  char digits[12];
  std::snprintf(digits, sizeof digits, "%08x", sum.value());
  return digits;
}

void SavedRun::load(Session &session) const {
  if (!saved.frozen.empty())
    if (const std::string found = frozenChecksum(session, program); found != saved.frozen)
      throw DataError(text(file.path(), ": holds what was trained alone, beside frozen weights of checksum ",
                           printable(saved.frozen), "; those of this run have ", found,
                           ": give it the weights that it was trained with by --init"));
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isCarried(variable))
      continue;
    TensorReader reader(file, variable.name, variable.saved().type, variable.saved().shape);
    writeSaved(session, variable, [&](size_t first, void *to, size_t bytes) { reader.read(first, to, bytes); });
  }
  file.data().dropPages();
}

} // namespace sluice
