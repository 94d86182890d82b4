// SPDX-License-Identifier: Apache-2.0
// What the compiler may write over: files that it wrote for the same purpose. Never what it reads.
#pragma once

#include "runtime/Result.h"
#include "tools/Driver.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sluice {

/// What an output is, by which a former one is known: programs by a section, weights by their metadata, the others by
/// how they begin.
enum class Made { Program, Weights, Template, Source, Level, Report, Library, Archive, Header, Package };

/// Protects what a user has: which paths one compilation may write to.
class Destinations {
public:
  Destinations(std::vector<std::string> inputs, bool force) : inputs(std::move(inputs)), force(force) {}

  /// An error for a path that is a folder, a device, or a file that this compilation reads; without --force also for
  /// one that was not made for the same purpose. An empty file is nobody's.
  Status check(const std::filesystem::path &path, Made made) const;
  /// The same for the folder of a project: it must be empty, or with --force a project.
  Status checkProject(const std::filesystem::path &folder) const;

private:
  std::vector<std::string> inputs;
  bool force;
};

/// All files that a compilation reads; `modelFiles` are the model and its external data.
std::vector<std::string> inputsOf(const DriverOptions &options, std::vector<std::string> modelFiles);

/// What -o names, or the model's own name; links followed. Of a library NAME, whatever of it was named.
std::filesystem::path outputPath(const DriverOptions &options);

} // namespace sluice
