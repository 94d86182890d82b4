// SPDX-License-Identifier: Apache-2.0
// --predict: what the model's first output is for each sample of a data set, as a .npy file.
#pragma once

#include "runtime/program/Forward.h"

#include <string>

namespace sluice {

/// What files of predictions begin with: NumPy's own have the keys of their header in another order.
std::string predictionsMark();

/// Throws UsageError when this program has no output of samples, or no function for it.
void requireOutput(const Program &program, const Entry &entry);

/// Writes float32 [samples, ...] in the order of the data set, batch by batch; the file appears when it is whole. False
/// when a signal that InterruptGuard notes ended it: then nothing is left.
bool predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset);

} // namespace sluice
