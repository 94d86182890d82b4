// SPDX-License-Identifier: Apache-2.0
// The class of a pixel is found in the model's own size and then moved to where its pixel was, never mixed.

#include "runtime/program/PredictedMasks.h"

#include "runtime/Errors.h"
#include "runtime/data/Planes.h"
#include "runtime/files/File.h"
#include "runtime/files/Npy.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Predictions.h"

#include <algorithm>
#include <filesystem>

namespace sluice {

Result<PixelAnswers> pixelAnswersOf(const Output &output) {
  const Shape &shape = output.tensor.shape;
  const bool binary = hasLoss(output, "bce-with-logits"), last = hasLoss(output, "token-cross-entropy");
  if (output.loss && !binary && !hasCrossEntropy(output))
    return Error{text("is trained by ", output.loss, ", whose numbers are no classes of pixels")};
  if (shape.rank != 4 && !(shape.rank == 3 && binary))
    return Error{text("has the shape ", numpyShape({shape.dims, shape.dims + shape.rank}),
                      ", which is no (samples, classes, height, width)")};
  const int first = shape.rank == 3 || last ? 1 : 2;
  PixelAnswers answers;
  answers.classes = shape.rank == 3 ? 1 : shape[last ? 3 : 1];
  answers.size = {static_cast<int>(shape[first + 1]), static_cast<int>(shape[first])};
  const int64_t pixels = shape[first] * shape[first + 1];
  answers.classStride = last ? 1 : pixels;
  answers.pixelStride = last ? answers.classes : 1;
  answers.bound = output.probabilities ? 0.5f : 0.0f;
  if (binary && answers.classes > 1)
    return Error{text("says yes or no of ", answers.classes, " labels, of which a pixel may have several")};
  if (answers.classes > 65536)
    return Error{text("tells ", answers.classes, " classes apart, a PNG 65536")};
  if (pixels > mostPixels)
    return Error{text("has ", pixels, " pixels, images have ", mostPixels, " at most")};
  return answers;
}

bool isMaskFolder(const std::string &path) {
  std::error_code ignored;
  return endsWith(path, "/") || std::filesystem::is_directory(path, ignored);
}

FileMark maskFileMark() { return {maskPngHead, maskPngMark()}; }

namespace {

using Array = PredictedSamples::Array;

int bitsOf(const MaskFiles &files) {
  const uint16_t most = std::max(files.outside, *std::max_element(files.numbers.begin(), files.numbers.end()));
  return most > 255 ? 16 : 8;
}

/// The first output that tells classes of pixels; checked before.
size_t outputOf(const PredictedSamples &samples) {
  size_t output = 0;
  while (!samples.outputs[output].pixels)
    ++output;
  return output;
}

/// A folder of masks, which appears when it is whole.
class Masks : public Predictions {
public:
  Masks(const std::string &path, const PredictedSamples &samples)
      : folder(path, maskFileMark()), output(outputOf(samples)), answers(*samples.outputs[output].pixels),
        files(samples.masks), bits(bitsOf(files)) {}

  void add(const std::vector<std::vector<float>> &values, int64_t samples) override {
    const int64_t perSample = static_cast<int64_t>(values[output].size()) / std::max<int64_t>(1, samples);
    for (int64_t n = 0; n < samples; ++n)
      addOne(values[output].data() + n * perSample);
  }
  void commit() override { folder.commit(); }

private:
  /// The numbers of the classes of all pixels of a sample.
  std::vector<uint16_t> answersIn(const float *values) const {
    std::vector<uint16_t> numbers(static_cast<size_t>(answers.size.width) * static_cast<size_t>(answers.size.height));
    for (size_t i = 0; i < numbers.size(); ++i, values += answers.pixelStride) {
      int64_t answer = answers.classes == 1 && values[0] > answers.bound ? 1 : 0;
      for (int64_t k = 1; k < answers.classes; ++k)
        if (values[k * answers.classStride] > values[answer * answers.classStride])
          answer = k;
      numbers[i] = files.numbers[static_cast<size_t>(answer)];
    }
    return numbers;
  }

  void addOne(const float *values) {
    const std::vector<uint16_t> numbers = answersIn(values);
    const PlaneMove move(files.back(next, answers.size), answers.size);
    LabelMap mask{move.size().width, move.size().height, {}};
    mask.values.resize(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height));
    move.apply(reinterpret_cast<const char *>(numbers.data()), 1, sizeof(uint16_t), &files.outside,
               reinterpret_cast<char *>(mask.values.data()));
    folder.write(files.stems[static_cast<size_t>(next++)] + ".png", encodeMask(mask, bits));
  }

  OutputFolder folder;
  const size_t output;
  const PixelAnswers answers;
  const MaskFiles &files;
  const int bits;
  int64_t next = 0;
};

} // namespace

/// Of several outputs the program's first one is what is measured and answered, and so what is drawn.
void checkMasks(const std::string &path, const std::vector<Array> &outputs) {
  std::string with, without;
  int64_t count = 0;
  for (const Array &output : outputs) {
    std::string &list = output.pixels ? with : without;
    list += text(list.empty() ? "'" : ", '", output.name, "'", output.pixels ? "" : " " + output.noPixels);
    count += output.pixels.has_value();
  }
  if (count == 0)
    throw UsageError(text("--output ", path, ": a folder takes masks of classes, but ", without,
                          ": write its numbers as .npy or .npz"));
  if (count > 1 && !outputs[0].pixels)
    throw UsageError(text("--output ", path, ": masks are of one output, the program predicts them by ", with,
                          ": write .npz, or compile with --output=NAME for one of them"));
}

std::unique_ptr<Predictions> openMasks(const std::string &path, const PredictedSamples &samples) {
  return std::make_unique<Masks>(path, samples);
}

} // namespace sluice
