// SPDX-License-Identifier: Apache-2.0
// Predictions of segmentation as people have masks: a PNG for each image, of its name and its size, whose grey values
// are the classes' numbers, as in the masks that were trained on.
#pragma once

#include "runtime/Program.h"
#include "runtime/Result.h"
#include "runtime/data/Augment.h"
#include "runtime/files/OutputFolder.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// How an output of [N,classes,height,width], [N,height,width,classes], [N,1,height,width] or [N,height,width] tells
/// the class of each pixel.
struct PixelAnswers {
  int64_t classes = 0; ///< the one with the highest score is the answer, of equal ones the first; 1: see `bound`
  ImageSize size;
  int64_t classStride = 0, pixelStride = 0; ///< elements from a class, and from a pixel, to the next
  float bound = 0;                          ///< of the only score of a pixel: above it the class is 1, else 0
  int64_t answers() const { return classes == 1 ? 2 : classes; }
};

/// Where it does not, the error is the end of a sentence that begins with the output.
Result<PixelAnswers> pixelAnswersOf(const Output &output);

/// How masks of a data set become files.
struct MaskFiles {
  std::vector<std::string> stems; ///< of each sample: its file's name without the ending
  std::vector<uint16_t> numbers;  ///< of each class
  uint16_t outside = 0;           ///< of pixels that the model did not see
  /// What gives a plane of this size the size of a sample's image; Dataset::backToImage().
  std::function<ImageChanges(int64_t sample, ImageSize)> back;
};

/// Whether predictions of this name are a folder: it ends in a slash, or there is one.
bool isMaskFolder(const std::string &path);
/// By which a run knows masks of runs before.
FileMark maskFileMark();

} // namespace sluice
