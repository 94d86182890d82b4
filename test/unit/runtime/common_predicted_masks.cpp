// SPDX-License-Identifier: Apache-2.0
// Which outputs tell the class of each pixel, and the files that their answers become.
#include "runtime/Errors.h"
#include "runtime/data/ImageFiles.h"
#include "runtime/data/Planes.h"
#include "runtime/program/Predictions.h"

#include "test/unit/runtime/Folder.h"

#include <cmath>

using namespace sluice;

namespace {

Output outputOf(Shape shape, const char *loss, bool probabilities = false) {
  Output output{"y", device(0, shape), 1, loss};
  output.probabilities = probabilities;
  return output;
}

/// "" for one that tells classes of pixels.
std::string refusalOf(Shape shape, const char *loss) {
  const Result<PixelAnswers> answers = pixelAnswersOf(outputOf(shape, loss));
  return answers ? "" : answers.error();
}

/// Masks of samples 'a', 'b'... as the writer makes them of these scores, 2 x 2 pixels each.
std::vector<LabelMap> masksOf(const Folder &folder, const Output &output, const std::vector<float> &scores,
                              const std::vector<uint16_t> &numbers, const ImageChanges &back = {}) {
  PredictedSamples samples;
  samples.outputs.push_back({"y", output.tensor.shape});
  samples.outputs[0].pixels = *pixelAnswersOf(output);
  samples.masks.numbers = numbers;
  samples.masks.outside = 77;
  samples.masks.back = [&](int64_t, ImageSize) { return back; };
  for (char name = 'a'; name < 'a' + static_cast<char>(output.tensor.shape[0]); ++name)
    samples.masks.stems.push_back(std::string("dogs/") + name);
  checkPredictions(folder / "masks/", samples.outputs);
  auto file = openPredictions(folder / "masks/", samples);
  file->add({scores}, output.tensor.shape[0]);
  file->commit();
  std::vector<LabelMap> masks;
  for (const std::string &stem : samples.masks.stems) {
    const std::string path = folder / ("masks/" + stem + ".png");
    masks.push_back(decodeMask(readImageFile(path), path));
  }
  return masks;
}

constexpr char classes[] = "softmax-cross-entropy", tokens[] = "token-cross-entropy", yes[] = "bce-with-logits";

} // namespace

TEST(PredictedMasks, OutputsOfPixelsAreKnownByLossAndShape) {
  EXPECT_EQ(refusalOf({2, 3, 4, 5}, classes), "");
  EXPECT_EQ(refusalOf({2, 4, 5, 3}, tokens), "");
  EXPECT_EQ(refusalOf({2, 1, 4, 5}, yes), "");
  EXPECT_EQ(refusalOf({2, 4, 5}, yes), "");
  EXPECT_EQ(refusalOf({2, 3, 4, 5}, nullptr), ""); // of a model that ends in its own loss
  EXPECT_EQ(refusalOf({2, 3}, classes), "has the shape (2, 3), which is no (samples, classes, height, width)");
  EXPECT_EQ(refusalOf({2, 4, 5}, classes), "has the shape (2, 4, 5), which is no (samples, classes, height, width)");
  EXPECT_EQ(refusalOf({2, 3, 4, 5, 6}, classes),
            "has the shape (2, 3, 4, 5, 6), which is no (samples, classes, height, width)");
  EXPECT_EQ(refusalOf({2, 3, 4, 5}, "mse"), "is trained by mse, whose numbers are no classes of pixels");
  EXPECT_EQ(refusalOf({2, 3, 4, 5}, yes), "says yes or no of 3 labels, of which a pixel may have several");
  const std::vector<PredictedSamples::Array> none = {{"y", {2, 3}, true, {}, std::nullopt, "is no image"}};
  expectError<UsageError>([&] { checkPredictions("masks/", none); },
                          "--output masks/: a folder takes masks of classes, but 'y' is no image: write its numbers");
  // The program's first output is drawn; of others none is before the rest.
  std::vector<PredictedSamples::Array> several = {{"a", {}, false, {}, PixelAnswers{}},
                                                  {"b", {}, false, {}, PixelAnswers{}}};
  checkPredictions("masks/", several);
  several.insert(several.begin(), none[0]);
  expectError<UsageError>([&] { checkPredictions("masks/", several); }, "the program predicts them by 'a', 'b'");
}

TEST(PredictedMasks, HoldTheNumberOfTheHighestScore) {
  Folder folder;
  // Three classes of four pixels; a tie is the first one's, and a NaN is never higher.
  const std::vector<float> scores = {1, 0, 3, NAN, 1, 2, 0, 5, 0, 2, 4, 1};
  const std::vector<LabelMap> first = masksOf(folder, outputOf({1, 3, 2, 2}, classes), scores, {0, 10, 20});
  EXPECT_EQ(first[0].values, (std::vector<uint16_t>{0, 10, 20, 0}));
  std::vector<float> last;
  for (size_t pixel = 0; pixel < 4; ++pixel)
    for (size_t k = 0; k < 3; ++k)
      last.push_back(scores[k * 4 + pixel]);
  const std::vector<LabelMap> second = masksOf(folder, outputOf({1, 2, 2, 3}, tokens), last, {0, 10, 1000});
  EXPECT_EQ(second[0].values, (std::vector<uint16_t>{0, 10, 1000, 0})); // 16 bits
}

TEST(PredictedMasks, HoldYesAboveOneHalf) {
  Folder folder;
  const std::vector<float> scores = {0.25f, 0, -1, NAN, 0.75f, 0.5f, 2, -0.1f};
  for (const Shape &shape : {Shape{2, 1, 2, 2}, Shape{2, 2, 2}})
    for (bool probabilities : {false, true}) {
      const auto masks = masksOf(folder, outputOf(shape, yes, probabilities), scores, {0, 255});
      EXPECT_EQ(masks[0].values, (std::vector<uint16_t>{static_cast<uint16_t>(probabilities ? 0 : 255), 0, 0, 0}));
      EXPECT_EQ(masks[1].values, (std::vector<uint16_t>{255, static_cast<uint16_t>(probabilities ? 0 : 255), 255, 0}));
    }
}

TEST(PredictedMasks, HaveWhatTheModelDidNotSee) {
  Folder folder;
  const ImageChanges back = undone({{ImageChange::Kind::Crop, {1, 0, 2, 2}}}, {4, 3}, {2, 2});
  const auto masks = masksOf(folder, outputOf({1, 2, 2}, yes), {1, -1, -1, 1}, {5, 6}, back);
  EXPECT_EQ(masks[0].width, 4);
  EXPECT_EQ(masks[0].values, (std::vector<uint16_t>{77, 6, 5, 77, 77, 5, 6, 77, 77, 77, 77, 77}));
}
