// SPDX-License-Identifier: Apache-2.0
// --predict: what the model's first output is for each sample of a data set, as a file (Predictions.h).
#pragma once

#include "runtime/program/Forward.h"

#include <string>
#include <vector>

namespace sluice {

/// Throws UsageError when this program has no output of samples, or no function for it, or `path` is no file for it.
void requireOutput(const Program &program, const Entry &entry, const std::string &path);

/// Writes the output of all samples, in the order of the data set, batch by batch; the file appears when it is whole.
/// False when a signal that InterruptGuard notes ended it: then nothing is left. `classes`: what they are called.
bool predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset,
             const std::vector<std::string> &classes);

} // namespace sluice
