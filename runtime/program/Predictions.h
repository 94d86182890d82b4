// SPDX-License-Identifier: Apache-2.0
// Files of what a model makes of samples, in the format that the ending of their name says: .npy has the numbers alone,
// of one output, .npz those of all and what each sample and class is called, .csv and .json a row a sample; a folder
// has a mask for each image.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/PredictedMasks.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// What is predicted, before the first number is known.
struct PredictedSamples {
  std::vector<std::string> names; ///< of the samples, in order
  struct Array {
    std::string name;    ///< of the output
    Shape shape;         ///< of a batch
    bool scores = false; ///< each sample has one score for each class, of which the highest is its answer
    std::vector<std::string> classes = {};   ///< what they are called; empty: not known
    std::optional<PixelAnswers> pixels = {}; ///< it tells the class of each pixel; else `noPixels` says why not
    std::string noPixels = {};
  };
  std::vector<Array> outputs; ///< one or more
  MaskFiles masks = {};       ///< where they are predicted
};

class Predictions {
public:
  virtual ~Predictions() = default;
  /// The numbers of the next `samples` samples, row-major, of each output.
  virtual void add(const std::vector<std::vector<float>> &values, int64_t samples) = 0;
  /// The file appears under its name.
  virtual void commit() = 0;
};

/// Throws UsageError for an ending that names no format, or a format that these outputs do not go into.
void checkPredictions(const std::string &path, const std::vector<PredictedSamples::Array> &outputs);
/// Checked before. `samples` must outlive it.
std::unique_ptr<Predictions> openPredictions(const std::string &path, const PredictedSamples &samples);

/// The same of a folder of masks alone.
void checkMasks(const std::string &path, const std::vector<PredictedSamples::Array> &outputs);
std::unique_ptr<Predictions> openMasks(const std::string &path, const PredictedSamples &samples);

/// Whether a file of this name says which sample is which.
bool namesSamples(const std::string &path);

/// What files of predictions of this name begin with.
std::string predictionsMark(const std::string &path);

} // namespace sluice
