// SPDX-License-Identifier: Apache-2.0
// Files of Sluice are known by how they begin, safetensors files by the format that their metadata name.

#include "runtime/program/Outputs.h"

#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/Export.h"
#include "runtime/program/Generate.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/ReportPage.h"
#include "runtime/program/WeightNames.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace sluice {

namespace {

/// One file that the command line asks for.
struct Written {
  const char *flag;
  std::string path;
  std::string begins;         ///< what Sluice's own files of this kind begin with; empty: they are safetensors
  const char *format;         ///< or, of safetensors files, their format
  const char *key = "format"; ///< of the metadata, which says so; without a format any value of it does
};

Written exportOf(const WeightFile &to) {
  return to.isSafetensors() ? Written{"--export", to.path, "", nullptr, exportedBy}
                            : Written{"--export", to.path, exportMark, nullptr};
}

std::vector<Written> outputsOf(const Arguments &arguments) {
  std::vector<Written> outputs;
  auto add = [&](const char *flag, const std::optional<std::string> &path, const std::string &begins,
                 const char *format) {
    if (path)
      outputs.push_back({flag, *path, begins, format});
  };
  if (arguments.exportTo)
    outputs.push_back(exportOf(WeightFile(*arguments.exportTo)));
  add("--trace", arguments.trace, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":", nullptr);
  add("--dump-gradients", arguments.dumpGradients, "", "sluice-gradients-1");
  add("--profile-out", arguments.profileOut, "{\"version\":1,\"device\":", nullptr);
  add("--log", arguments.log, "{\"event\":\"start\"", nullptr);
  if (arguments.output)
    add("--output", arguments.output, arguments.generate ? answersMark : predictionsMark(*arguments.output), nullptr);
  add("--report", arguments.report, reportMark, nullptr);
  if (arguments.checkpoint) {
    add("--checkpoint", checkpointPath(*arguments.checkpoint), "", checkpointFormat);
    if (arguments.data)
      add("--checkpoint", recipePath(*arguments.checkpoint), recipeMark, nullptr);
  }
  if (arguments.checkpoint && (arguments.best || arguments.patience))
    add("--best", bestPath(*arguments.checkpoint), "", checkpointFormat);
  return outputs;
}

/// A terminal, a pipe, /dev/null: what several may write to.
bool isDevice(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

bool isRegular(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool isCheckpoint(const Written &output) { return std::strcmp(output.flag, "--checkpoint") == 0; }

/// A run may go on in the folder that it came from, by the recipe that lies there.
bool resumes(const Arguments &arguments, const std::string &input) {
  return (arguments.resume && input == resumedPath(*arguments.resume)) ||
         (arguments.recipe && input == *arguments.recipe);
}

/// Throws DataError for a file that cannot be read, or not as one of the kind.
bool isOurs(const Written &output, const Program &program) {
  if (output.begins.empty()) {
    const SafetensorsFile file(output.path);
    checkIdentity(file, program);
    const auto said = file.metadata().find(output.key);
    return said != file.metadata().end() && (!output.format || said->second == output.format);
  }
  const InputFile file(output.path);
  std::string begin(output.begins.size(), '\0');
  if (file.size() < begin.size())
    return false;
  file.readAt(0, begin.data(), begin.size());
  return begin == output.begins;
}

void requireOurs(const Written &output, const Program &program) {
  std::string why;
  try {
    if (isOurs(output, program))
      return;
  } catch (const DataError &error) {
    why = text(" (", error.what(), ")");
  }
  throw DataError(text(output.flag, " ", output.path, ": exists and was not written by ", output.flag, why,
                       "; move it away or add --force"));
}

} // namespace

void checkEndings(const Arguments &arguments) {
  static constexpr const char *known[] = {".bin",  ".csv", ".html", ".json", ".jsonl",       ".npy", ".npz",
                                          ".onnx", ".pkl", ".pt",   ".pth",  ".safetensors", ".txt"};
  const auto check = [](const char *flag, const std::optional<std::string> &path,
                        std::initializer_list<const char *> own) {
    if (!path)
      return;
    const auto ends = [&](const char *ending) { return endsWith(*path, ending); };
    if (std::any_of(std::begin(known), std::end(known), ends) && std::none_of(own.begin(), own.end(), ends))
      throw UsageError(text(flag, " ", *path, ": it writes ", *own.begin(),
                            own.size() > 1 ? text(" or ", own.begin()[1]) : "",
                            ", which the name says is something else"));
  };
  check("--report", arguments.report, {".html"});
  if (arguments.generate)
    check("--output", arguments.output, {".jsonl"});
  check("--dump-gradients", arguments.dumpGradients, {".safetensors"});
  check("--export", arguments.exportTo ? std::optional(WeightFile(*arguments.exportTo).path) : std::nullopt,
        {".onnx", ".safetensors"});
}

/// Whether a path leads into a folder, at whatever depth.
static bool liesIn(const std::string &path, const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code one, other;
  const auto whole = [](const std::string &name, std::error_code &error) { // without a slash at its end
    const fs::path full = fs::weakly_canonical(fs::absolute(name, error), error);
    return full.has_filename() ? full : full.parent_path();
  };
  const fs::path inner = whole(path, one), outer = whole(folder, other);
  return !one && !other && std::distance(inner.begin(), inner.end()) > std::distance(outer.begin(), outer.end()) &&
         std::equal(outer.begin(), outer.end(), inner.begin());
}

/// A folder of masks is replaced as a whole, so nothing else of the run may lie in it.
static void checkFolder(const Arguments &arguments, const std::vector<Written> &outputs,
                        const std::vector<std::string> &inputs) {
  if (!arguments.output || arguments.generate || !isMaskFolder(*arguments.output))
    return;
  const std::string said = text("--output ", *arguments.output, ": is replaced as a whole, and holds ");
  for (const std::string &input : inputs)
    if (liesIn(input, *arguments.output))
      throw UsageError(text(said, input, ", which this run reads"));
  for (const Written &output : outputs)
    if (liesIn(output.path, *arguments.output))
      throw UsageError(text(said, "the file of ", output.flag));
  for (const auto &[flag, folder] :
       {std::pair{"--checkpoint", arguments.checkpoint}, {"--tensorboard", arguments.tensorboard}})
    if (folder && (isSameFile(*folder, *arguments.output) || liesIn(*folder, *arguments.output)))
      throw UsageError(text(said, "the folder of ", flag));
}

/// One file that nothing is to be replaced by but what was written for the same purpose.
static void checkAlone(const Written &output, const Program &program, const std::vector<std::string> &inputs) {
  if (!isRegular(output.path))
    return;
  for (const std::string &input : inputs)
    if (isSameFile(input, output.path))
      throw UsageError(text(output.flag, " ", output.path, ": is ", input, ", which is read"));
  if (std::error_code ignored; std::filesystem::file_size(output.path, ignored) > 0)
    requireOurs(output, program);
}

void checkExportFile(const WeightFile &to, const Program &program, const std::vector<std::string> &inputs) {
  checkAlone(exportOf(to), program, inputs);
}

void checkCheckpointFolder(const std::string &folder, const Program &program, const std::vector<std::string> &inputs) {
  checkAlone({"--checkpoint", checkpointPath(folder), "", checkpointFormat}, program, inputs);
}

bool leavesFormerRun(const Arguments &arguments) {
  return !arguments.resume || !isSameFile(parentFolder(resumedPath(*arguments.resume)), *arguments.checkpoint);
}

/// Hours of training are not lost with a forgotten --resume.
static void requireNoFormerRun(const Arguments &arguments, const Program &program) {
  if (!arguments.checkpoint || arguments.force || !leavesFormerRun(arguments))
    return;
  const std::string &folder = *arguments.checkpoint;
  for (const std::string &path : {checkpointPath(folder), bestPath(folder)}) {
    if (!isRegular(path) || !isCheckpointOf(path, program))
      continue;
    const SafetensorsFile file(path);
    const auto step = file.metadata().find("step");
    if (step != file.metadata().end() && step->second != "0")
      throw DataError(text("--checkpoint ", folder, ": ", path, " is from step ", step->second, " of another run of ",
                           "this model, which this run, from ",
                           arguments.resume ? resumedPath(*arguments.resume) : "the start",
                           ", would write over: go on from there by --resume ",
                           path == bestPath(folder) ? path : folder, ", name another folder, or add --force"));
  }
}

/// What the run does with a file that an output would replace.
static const char *ownFile(const Program &program, const std::string &input) {
  for (const char *beside : {program.weightsFile, program.exportTemplate})
    if (beside && isSameFile(besideProgram(beside), input))
      return "the compiler wrote beside the program, which reads it at every start; choose another name";
  return "this run reads";
}

void checkOutputs(const Arguments &arguments, const Program &program, const std::vector<std::string> &inputs) {
  const std::vector<Written> outputs = outputsOf(arguments);
  checkFolder(arguments, outputs, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Written &output = outputs[i];
    const std::string said = text(output.flag, " ", output.path);
    for (size_t j = 0; j < i; ++j)
      if (isSameFile(outputs[j].path, output.path) && !isDevice(output.path))
        throw UsageError(text(said, ": is the file of ", outputs[j].flag, ", too"));
    if (!isRegular(output.path))
      continue; // nothing is there, or what is written to without replacing it
    for (const std::string &input : inputs)
      if (isSameFile(input, output.path) && !(isCheckpoint(output) && resumes(arguments, input)))
        throw UsageError(text(said, ": is ", input, ", which ", ownFile(program, input)));
    std::error_code ignored;
    if (!arguments.force && std::filesystem::file_size(output.path, ignored) > 0)
      requireOurs(output, program);
  }
  requireNoFormerRun(arguments, program);
}

} // namespace sluice
