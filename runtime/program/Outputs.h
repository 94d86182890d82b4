// SPDX-License-Identifier: Apache-2.0
// What a run may write over: files that a program of Sluice wrote for the same purpose. Never what the run reads.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/WeightNames.h"

#include <string>
#include <vector>

namespace sluice {

/// Other programs know a format by the ending of a name. Throws UsageError for one that belongs to another format.
void checkEndings(const Arguments &arguments);

/// Throws UsageError when an output is one of `inputs` or the file of another output, DataError when it is an existing
/// file of somebody else's, a checkpoint of another model say, or of another run of this one, and there is no --force.
/// An empty file is nobody's.
void checkOutputs(const Arguments &arguments, const Program &program, const std::vector<std::string> &inputs);

/// Whether the folder of --checkpoint is not the one that --resume goes on from: what lies there is of other runs.
bool leavesFormerRun(const Arguments &arguments);

/// The same of one file alone, where nothing else is written: what exportModel(), and what a CheckpointWriter write.
void checkExportFile(const WeightFile &to, const Program &program, const std::vector<std::string> &inputs);
void checkCheckpointFolder(const std::string &folder, const Program &program, const std::vector<std::string> &inputs);

} // namespace sluice
