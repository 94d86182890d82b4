// SPDX-License-Identifier: Apache-2.0
// A former checkpoint keeps its file: it gets a second name (a hard link) before the new one takes the first, so that
// there is a newest one at every moment. File systems without links get a copy. The order is that of writing, not of
// steps: who went back to an earlier step writes smaller ones from there.

#include "runtime/program/KeptCheckpoints.h"

#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

namespace fs = std::filesystem;

namespace sluice {

static constexpr char prefix[] = "checkpoint-", suffix[] = ".safetensors";

std::string bestPath(const std::string &folder) { return joinPath(folder, "best.safetensors"); }

bool isCheckpointOf(const std::string &path, const Program &program) {
  try {
    const SafetensorsFile file(path);
    checkIdentity(file, program);
    const auto format = file.metadata().find("format");
    return format != file.metadata().end() && format->second == checkpointFormat;
  } catch (const DataError &) {
    return false;
  }
}

namespace {

struct Former {
  std::string path;
  fs::file_time_type written;
  std::string step; ///< digits

  /// Written later; a clock may not tell two apart that were written one after the other.
  bool operator<(const Former &other) const {
    return std::tuple(written, step.size(), step) > std::tuple(other.written, other.step.size(), other.step);
  }
};

/// The digits of a name as it is given to former checkpoints; empty for other names.
std::string stepOfName(const std::string &name) {
  const size_t begin = sizeof prefix - 1, around = begin + sizeof suffix - 1;
  if (name.size() <= around || name.compare(0, begin, prefix) != 0 ||
      name.compare(name.size() - (sizeof suffix - 1), sizeof suffix - 1, suffix) != 0)
    return "";
  const std::string step = name.substr(begin, name.size() - around);
  return step.find_first_not_of("0123456789") == std::string::npos ? step : "";
}

/// The last written first.
std::vector<Former> formersOf(const std::string &folder) {
  std::vector<Former> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string step = stepOfName(at->path().filename().string());
    std::error_code gone;
    if (step.empty() || !at->is_regular_file(gone))
      continue;
    const fs::file_time_type written = at->last_write_time(gone);
    if (!gone)
      found.push_back({at->path().string(), written, step});
  }
  std::sort(found.begin(), found.end());
  return found;
}

void copyTo(const std::string &from, const std::string &to) {
  const InputFile original(from);
  OutputFile copy(to);
  copyAll(original, copy);
  copy.commit();
  original.dropPages();
}

} // namespace

void keepFormer(const std::string &folder, const Program &program, int64_t next) {
  const std::string newest = checkpointPath(folder);
  if (!isCheckpointOf(newest, program))
    return;
  const SafetensorsFile file(newest);
  const auto said = file.metadata().find("step");
  const std::string step = said == file.metadata().end() ? "" : said->second;
  if (stepOfName(prefix + step + suffix).empty() || step == std::to_string(next))
    return;
  const std::string kept = joinPath(folder, prefix + step + suffix);
  std::error_code error;
  if (fs::exists(kept, error)) {
    if (isSameFile(kept, newest))
      return;
    if (!isCheckpointOf(kept, program))
      throw DataError(text("cannot write ", kept, ": exists and is no checkpoint of this model; move it away"));
    fs::remove(kept, error);
  }
  fs::create_hard_link(newest, kept, error);
  if (error)
    copyTo(newest, kept);
}

void dropFormer(const std::string &folder, const Program &program, int64_t kept) {
  for (const Former &former : formersOf(folder)) {
    std::error_code ignored; // what cannot be removed harms nobody
    if (isCheckpointOf(former.path, program) && --kept < 0)
      fs::remove(former.path, ignored);
  }
}

void dropBest(const std::string &folder, const Program &program) {
  std::error_code ignored; // as above
  if (isCheckpointOf(bestPath(folder), program))
    fs::remove(bestPath(folder), ignored);
}

std::string lastWholeCheckpoint(const std::string &folder, const Program &program, const std::string &damaged) {
  std::vector<std::string> paths = {checkpointPath(folder)};
  for (const Former &former : formersOf(folder))
    paths.push_back(former.path);
  paths.push_back(bestPath(folder));
  for (const std::string &path : paths)
    try {
      if (!isSameFile(path, damaged))
        return SavedRun(path, program).path();
    } catch (const DataError &) {
      // no better than the damaged one
    }
  return "";
}

} // namespace sluice
