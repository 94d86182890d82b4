// SPDX-License-Identifier: Apache-2.0
// The driver of sluicec in two steps: the command line, and the compilation that it asks for.
#pragma once

#include "frontend/Buckets.h"
#include "passes/Pipeline.h"

#include <map>
#include <optional>
#include <string>

namespace sluice {

enum class Emit { Forward, Training, Linearized, Planned, Scheduled, Placed, Source, Project, Binary, Library, Report };

/// The command line of sluicec as read. What only a pass can judge is still a word, as the percentage of a budget.
struct DriverOptions {
  std::string model, output;
  Emit emit = Emit::Binary;
  std::string cpu = "native"; ///< what a host program is built for: native, or a name of runtime/CpuTable.h
  TrainingSpec spec;
  DimBuckets buckets;
  PipelineOptions pipeline;
  bool listParameters = false, explain = false, maxBatch = false, check = false, force = false;
  bool dataFormats = false; ///< a library reads files, too
  bool deviceNamed = false; ///< by --device; else see chooseDevice()
  bool calibrate = false;   ///< measure this machine again
  std::string commandLine;  ///< as given, for the preface of emitted source
};

/// The flags of sluicec with their dashes, and whether they take a value.
std::map<std::string, bool> compilerFlags();

/// `words`: what stands after the program's name. Nothing when compilation should go on; else the exit status (0 after
/// --help).
std::optional<int> parseCommandLine(const std::vector<std::string> &words, DriverOptions &options);

/// Runs the compiler; returns the exit status. Errors are a line on stderr, and one for each of their notes.
int compile(const DriverOptions &options);

} // namespace sluice
