// SPDX-License-Identifier: Apache-2.0
// A batch at a time, whatever the format.

#include "runtime/program/Predict.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/data/MaskFolder.h"
#include "runtime/data/Skipped.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

namespace sluice {

std::vector<const Output *> predictedBy(const Program &program) {
  std::vector<const Output *> list;
  for (int i = 0; i < program.outputCount; ++i) {
    const Output &output = program.outputs[i];
    const bool isNew = std::none_of(list.begin(), list.end(), [&](const Output *other) {
      return other->tensor.offset == output.tensor.offset && !std::strcmp(other->name, output.name);
    });
    if (output.tensor.present && isNew)
      list.push_back(&output);
  }
  return list;
}

static std::vector<PredictedSamples::Array> arraysOf(const Program &program, const ClassNames &names = {}) {
  std::vector<PredictedSamples::Array> arrays;
  for (const Output *output : predictedBy(program)) {
    const std::optional<Scores> scores = scoresOf(program, *output, output->target);
    const bool isScores = scores && scores->classes > 0 && scores->answers == program.batch;
    arrays.push_back({output->name, output->tensor.shape, isScores, namesOf(program, output->target, names)});
    if (const Result<PixelAnswers> pixels = pixelAnswersOf(*output))
      arrays.back().pixels = *pixels;
    else
      arrays.back().noPixels = pixels.error();
  }
  return arrays;
}

void requireOutput(const Program &program, const Entry &entry, const std::string &path) {
  const std::vector<PredictedSamples::Array> arrays = arraysOf(program);
  if (!entry.evaluate || arrays.empty())
    throw UsageError("--predict is not available: this program keeps no output of samples: its model ends in its own "
                     "loss and has no other output that begins with the batch, or its scores are computed in parts; "
                     "without --parts the model keeps them");
  for (int bucket = 0; bucket < program.bucketCount; ++bucket)
    for (int i = 0; i < program.outputCount; ++i) {
      const Shape &largest = program.outputs[i].tensor.shape, &own = program.buckets[bucket].outputs[i].tensor.shape;
      if (!std::equal(largest.dims, largest.dims + largest.rank, own.dims, own.dims + own.rank))
        throw UsageError(text("--predict writes arrays of samples of one size, output '", program.outputs[i].name,
                              "' has another in each bucket: compile with one extent for --predict"));
    }
  checkPredictions(path, arrays);
}

/// Of the first output that tells classes of pixels, which there is.
static MaskFiles maskFilesOf(const Program &program, const Dataset &dataset, const std::string &values) {
  std::optional<PixelAnswers> answers;
  MaskFiles files;
  int64_t ignored = Loss::none;
  for (const Output *output : predictedBy(program)) {
    ignored = output->target >= 0 ? program.inputs[output->target].ignoreIndex : Loss::none;
    if (const Result<PixelAnswers> pixels = pixelAnswersOf(*output)) {
      answers = *pixels;
      break;
    }
  }
  const std::string said = dataset.maskValues().value_or("").empty() ? values : *dataset.maskValues();
  files.numbers = said.empty() ? std::vector<uint16_t>() : maskNumbers(said);
  if (said.empty()) {
    files.numbers.resize(static_cast<size_t>(answers->answers()));
    std::iota(files.numbers.begin(), files.numbers.end(), uint16_t{0});
  }
  if (static_cast<int64_t>(files.numbers.size()) < answers->answers())
    throw UsageError(text("masks: values=", said, " are the numbers of ", files.numbers.size(), " classes, the model ",
                          "tells ", answers->answers(),
                          " apart: --predict segmentation:IMAGES,values=V0:V1... has one ", "for each"));
  files.outside = ignored >= 0 && ignored <= 65535 ? static_cast<uint16_t>(ignored) : files.numbers[0];
  for (int64_t i = 0; i < dataset.samples(); ++i)
    files.stems.push_back(dataset.fileStem(i));
  files.back = [&dataset](int64_t sample, ImageSize plane) { return dataset.backToImage(sample, plane); };
  return files;
}

void requireMasks(const Program &program, const Dataset &dataset, const std::string &values) {
  const MaskFiles files = maskFilesOf(program, dataset, values);
  std::map<std::string, int64_t> samples;
  for (size_t i = 0; i < files.stems.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (const auto [place, added] = samples.emplace(files.stems[i], index); !added)
      throw DataError(text(dataset.sampleName(place->second), " and ", dataset.sampleName(index),
                           " would both have the mask ", files.stems[i], ".png: rename one of them"));
  }
}

void readOutput(Session &session, Tensor tensor, int64_t samples, std::vector<float> &values) {
  tensor.shape.dims[0] = samples;
  values.resize(static_cast<size_t>(tensor.shape.elements()));
  char *to = reinterpret_cast<char *>(values.data());
  readTensor(session, tensor, [&](const void *data, size_t bytes) {
    std::memcpy(to, data, bytes);
    to += bytes;
  });
}

/// Null when it was interrupted.
static std::unique_ptr<Predictions> predictOnce(const std::string &path, PredictedSamples &samples, Session &session,
                                                const Program &program, const Entry &entry, Dataset &dataset,
                                                const std::string &maskValues) {
  samples.names.clear();
  for (int64_t i = 0; i < dataset.samples(); ++i)
    samples.names.push_back(dataset.sampleName(i));
  if (isMaskFolder(path))
    samples.masks = maskFilesOf(program, dataset, maskValues);
  std::unique_ptr<Predictions> file = openPredictions(path, samples);
  const std::vector<ForwardBatch> list = dataset.forwardBatches();
  std::vector<std::vector<float>> values(predictedBy(program).size());
  const bool whole = forwardAll(session, program, entry, dataset, list, [&](size_t i, const Batches &batches) {
    const std::vector<const Output *> outputs = predictedBy(dataset.shape(batches.bucket()));
    for (size_t k = 0; k < outputs.size(); ++k)
      readOutput(session, outputs[k]->tensor, list[i].samples, values[k]);
    file->add(values, list[i].samples);
  });
  return whole ? std::move(file) : nullptr;
}

static void predictAlong(Session &session, const Program &program, const Entry &entry, Dataset &dataset) {
  const auto nothing = [](size_t, const Batches &) {};
  while (forwardAll(session, program, entry, dataset, dataset.forwardBatches(), nothing) && dataset.leaveOutBad()) {
  }
}

void predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset,
             const PredictionNames &names) {
  if (path.empty())
    return predictAlong(session, program, entry, dataset);
  PredictedSamples samples{{}, arraysOf(program, names.classes)};
  for (;;) {
    const std::unique_ptr<Predictions> file =
        predictOnce(path, samples, session, program, entry, dataset, names.maskValues);
    if (!file)
      return;
    if (dataset.leaveOutBad()) // others were predicted in their place
      continue;
    file->commit();
    std::printf("predictions:   %lld samples in %s%s\n", static_cast<long long>(dataset.samples()),
                printable(path).c_str(), leftOutText(dataset.skipped()).c_str());
    return;
  }
}

} // namespace sluice
