// SPDX-License-Identifier: Apache-2.0
// A batch at a time, whatever the format.

#include "runtime/program/Predict.h"

#include "runtime/Errors.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/TensorIO.h"

#include <cstring>

namespace sluice {

void requireOutput(const Program &program, const Entry &entry, const std::string &path) {
  if (!entry.evaluate || !program.output.present)
    throw UsageError("--predict is not available: this program keeps no output of samples: its model ends in its own "
                     "loss and has no other output that begins with the batch");
  checkPredictions(path, program.output.shape);
}

bool predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset,
             const std::vector<std::string> &classes) {
  PredictedSamples samples{{}, classes, program.output.shape};
  for (int64_t i = 0; i < dataset.samples(); ++i)
    samples.names.push_back(dataset.sampleName(i));
  const std::optional<Scores> scores = scoresOf(program);
  samples.scores = scores && scores->classes > 0 && scores->answers == program.batch;
  const std::unique_ptr<Predictions> file = openPredictions(path, samples);
  const std::vector<ForwardBatch> batches = forwardBatches(dataset.samples(), program.batch);
  std::vector<float> values(static_cast<size_t>(program.output.shape.elements()));
  const bool whole = forwardAll(session, program, entry, dataset, batches, [&](size_t i, int64_t) {
    Tensor output = program.output;
    output.shape.dims[0] = batches[i].samples;
    char *to = reinterpret_cast<char *>(values.data());
    readTensor(session, output, [&](const void *data, size_t bytes) {
      std::memcpy(to, data, bytes);
      to += bytes;
    });
    file->add(values.data(), batches[i].samples);
  });
  if (whole)
    file->commit();
  return whole;
}

} // namespace sluice
