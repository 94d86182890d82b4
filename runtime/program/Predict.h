// SPDX-License-Identifier: Apache-2.0
// --predict: what the model's first output is for each sample of a data set, as a file or a folder of masks
// (Predictions.h).
#pragma once

#include "runtime/program/Forward.h"

#include <string>
#include <vector>

namespace sluice {

/// Throws UsageError when this program has no output of samples, or no function for it, or `path` is no file for it.
void requireOutput(const Program &program, const Entry &entry, const std::string &path);

/// The outputs of samples that evaluate leaves, each once.
std::vector<const Output *> predictedBy(const Program &program);

/// The first `samples` samples of what evaluate has left, row-major.
void readOutput(Session &session, Tensor tensor, int64_t samples, std::vector<float> &values);

/// Throws for names or numbers of masks that cannot be: DataError for two samples of one name, UsageError for numbers
/// that are fewer than the classes. `values`: see predict().
void requireMasks(const Program &program, const Dataset &dataset, const std::string &values);

/// What predictions have besides the model's numbers.
struct PredictionNames {
  ClassNames classes;     ///< what they are called
  std::string maskValues; ///< `values` of MaskWords for masks, where the data set says none of its own
};

/// Writes the output of all samples, in the order of the data set, batch by batch, and says so; the file appears when
/// it is whole. Nothing is left when a signal that InterruptGuard notes ended it. An empty path: of a rank that writes
/// nothing, but computes the same with the one that does.
void predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset,
             const PredictionNames &names);

} // namespace sluice
