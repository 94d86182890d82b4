// SPDX-License-Identifier: Apache-2.0
// Recognition of the compiler's own files, see Destinations.h.
#include "tools/Destinations.h"

#include "passes/planner/Profile.h"
#include "runtime/files/OutputFile.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Export.h"

#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

Error fileError(const fs::path &path, const std::string &what) { return Error{path.string() + ": " + what}; }

/// A program has a section from the runtime (runtime/program/Run.cpp). So may the tools, which ask its kernels; they
/// have one more.
bool isProgram(const std::string &path) {
  auto object = llvm::object::ObjectFile::createObjectFile(path);
  if (!object)
    return llvm::consumeError(object.takeError()), false;
  bool runtime = false, tool = false;
  for (const llvm::object::SectionRef &section : object->getBinary()->sections()) {
    auto name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    runtime |= *name == ".sluice";
    tool |= *name == ".sluice_tool";
  }
  return runtime && !tool;
}

bool isWeights(const std::string &path) {
  const SafetensorsFile file(path);
  auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == weightsFormat;
}

/// The first bytes of a file, enough for what emitted text begins with.
std::string beginOf(const std::string &path) {
  const InputFile file(path);
  std::string begin(std::min<uint64_t>(file.size(), 1 << 16), '\0');
  file.readAt(0, begin.data(), begin.size());
  return begin;
}

/// Whether the words stand anywhere in a file.
bool holds(const std::string &path, std::string_view words) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return text && (*text)->getBuffer().contains(words);
}

/// Looks at what files of this kind begin with, or at a section of an executable: names say nothing about who wrote a
/// file. Throws where it cannot be read.
bool isMade(const std::string &path, Made made) {
  auto begins = [&](std::string_view with) { return beginOf(path).compare(0, with.size(), with) == 0; };
  switch (made) {
  case Made::Program:
    return isProgram(path);
  case Made::Weights:
    return isWeights(path);
  case Made::Template:
    return begins(exportMark);
  case Made::Source:
    return begins("// ") &&
           beginOf(path).find(": one training step and one evaluation batch, written by\n//   sluicec") !=
               std::string::npos;
  case Made::Level:
    return begins("module attributes {train.");
  case Made::Report:
    return begins("<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=generator content=sluice>") ||
           begins("strategy,budget_bytes,share_of_activations,");
  case Made::Library:
    return isProgram(path);
  case Made::Archive:
    return begins("!<arch>\n") && holds(path, "sluice-library-1");
  case Made::Package:
    return begins("# A model that trains, as a library: written by sluicec.");
  case Made::Header:
    return begins("/* A model that trains, as a library: written by sluicec. */");
  }
  return false;
}

bool isProject(const fs::path &folder) {
  try {
    return beginOf((folder / "CMakeLists.txt").string()).rfind("# Builds the training program with CMake", 0) == 0 &&
           fs::exists(folder / "runtime/Runtime.h");
  } catch (const std::exception &) {
    return false;
  }
}

} // namespace

std::vector<std::string> sluice::inputsOf(const DriverOptions &options, std::vector<std::string> inputs) {
  for (const std::string &profile : {options.pipeline.device, options.pipeline.profile}) {
    bool shipped = false;
    for (const auto &[name, text] : planner::shippedProfiles())
      shipped |= name == profile;
    if (!shipped && !profile.empty())
      inputs.push_back(profile);
  }
  return inputs;
}

/// A file that the compilation reads is refused even with --force: weights are read until the program is complete.
Status Destinations::check(const fs::path &path, Made made) const {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status))
    return fileError(path, "is a folder");
  if (!fs::exists(status))
    return Success{};
  if (!fs::is_regular_file(status))
    return fileError(path, "exists and is no regular file");
  for (const std::string &input : inputs)
    if (isSameFile(path.string(), input))
      return fileError(path, "is " + input + ", which this compilation reads; choose another name with -o");
  if (force || fs::file_size(path, ignored) == 0)
    return Success{};
  std::string why;
  try {
    if (isMade(path.string(), made))
      return Success{};
  } catch (const std::exception &error) {
    why = std::string(" (") + error.what() + ")";
  }
  static const char *const names[] = {
      "a program", "a program's weights", "a program's export template", "a program's source", "text of a level",
      "a report",  "a library",           "a library's archive",         "a library's header", "a library's .pc file"};
  return fileError(path, std::string("exists and is not ") + names[static_cast<int>(made)] +
                             " that was written by Sluice" + why +
                             "; choose another name with -o, move it away or add --force");
}

Status Destinations::checkProject(const fs::path &folder) const {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored)) ||
      (fs::is_directory(folder, ignored) && fs::is_empty(folder, ignored)))
    return Success{};
  const bool project = fs::is_directory(folder, ignored) && isProject(folder);
  if (!project || !force)
    return fileError(folder, std::string("exists and is no empty folder") +
                                 (project ? "; --force replaces a project with all that is in its folder" : ""));
  const fs::path whole = fs::weakly_canonical(folder, ignored);
  for (const std::string &input : inputs) {
    const fs::path inside = fs::weakly_canonical(input, ignored).lexically_relative(whole);
    if (!inside.empty() && *inside.begin() != "..")
      return fileError(folder, "holds " + input + ", which this compilation reads; choose another folder with -o");
  }
  return Success{};
}

/// Of a library the ending and `lib` in front go, as -o may name any of its files.
fs::path sluice::outputPath(const DriverOptions &options) {
  fs::path output = options.output;
  if (output.empty()) {
    const std::string source = factsOf(options.pipeline.target).suffix;
    output = fs::path(options.model).stem().string() + (options.emit == Emit::Source    ? source
                                                        : options.emit == Emit::Project ? "-project"
                                                        : options.emit == Emit::Report  ? "-report.html"
                                                                                        : "");
  }
  if (options.emit == Emit::Library) {
    const std::string file = output.stem().string(), ending = output.extension().string();
    if (ending == ".so" || ending == ".a" || ending == ".h")
      output.replace_filename(ending != ".h" && file.rfind("lib", 0) == 0 ? file.substr(3) : file);
    return output;
  }
  // What a link names is replaced, not the link; the number ends circles.
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(output, ignored); ++links)
    output = output.parent_path() / fs::read_symlink(output, ignored);
  return output;
}
