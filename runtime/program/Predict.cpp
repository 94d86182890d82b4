// SPDX-License-Identifier: Apache-2.0
// The header always takes as many bytes, so that the mark in it is one string; any shape fits.

#include "runtime/program/Predict.h"

#include "runtime/Errors.h"
#include "runtime/files/Npy.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/TensorIO.h"

namespace sluice {

static constexpr size_t headerBytes = 256;

std::string predictionsMark() {
  const size_t dictionary = headerBytes - 10; // behind magic, version and this length
  std::string mark("\x93NUMPY\x01\x00", 8);
  mark += static_cast<char>(dictionary & 0xff);
  mark += static_cast<char>(dictionary >> 8);
  return mark + "{'shape': (";
}

static std::string headerOf(int64_t samples, const Shape &batch) {
  std::string header = predictionsMark() + text(samples, ",");
  for (int i = 1; i < batch.rank; ++i)
    header += text(i > 1 ? ", " : " ", batch[i]);
  header += "), 'descr': '<f4', 'fortran_order': False}";
  header.resize(headerBytes - 1, ' ');
  return header + "\n";
}

void requireOutput(const Program &program, const Entry &entry) {
  if (!entry.evaluate || !program.output.present)
    throw UsageError("--predict is not available: this program keeps no output of samples, its model ends in its own "
                     "loss or was compiled without an evaluation function");
}

bool predict(const std::string &path, Session &session, const Program &program, const Entry &entry, Dataset &dataset) {
  OutputFile file(path);
  const std::string header = headerOf(dataset.samples(), program.output.shape);
  file.write(header.data(), header.size());
  const std::vector<ForwardBatch> batches = forwardBatches(dataset.samples(), program.batch);
  const bool whole = forwardAll(
      session, program, entry, dataset, batches, [](size_t) {},
      [&](size_t i) {
        Tensor output = program.output;
        output.shape.dims[0] = batches[i].samples;
        readTensor(session, output, [&](const void *data, size_t bytes) { file.write(data, bytes); });
      });
  if (whole)
    file.commit();
  return whole;
}

} // namespace sluice
