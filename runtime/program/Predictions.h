// SPDX-License-Identifier: Apache-2.0
// Files of what a model makes of samples, in the format that the ending of their name says: .npy has the numbers alone,
// .npz also what each sample and class is called, .csv and .json a row a sample.
#pragma once

#include "runtime/Program.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// What is predicted, before the first number is known.
struct PredictedSamples {
  std::vector<std::string> names; ///< of the samples, in order
  std::vector<std::string> classes;
  Shape output;        ///< of a batch of them
  bool scores = false; ///< each sample has one score for each class, of which the highest is its answer
};

class Predictions {
public:
  virtual ~Predictions() = default;
  /// The numbers of the next `samples` samples, row-major.
  virtual void add(const float *values, int64_t samples) = 0;
  /// The file appears under its name.
  virtual void commit() = 0;
};

/// Throws UsageError for an ending that names no format, or a format that so large an output does not go into.
void checkPredictions(const std::string &path, const Shape &output);
/// Checked before. `samples` must outlive it.
std::unique_ptr<Predictions> openPredictions(const std::string &path, const PredictedSamples &samples);

/// What files of predictions of this name begin with.
std::string predictionsMark(const std::string &path);

} // namespace sluice
