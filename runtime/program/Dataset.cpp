// SPDX-License-Identifier: Apache-2.0
// Samples are read one by one at their offset, brought from NCHW file order to the staging slot's layout and, when they
// are class ids or indices, range-checked: a kernel would use them as addresses.

#include "runtime/program/Dataset.h"

#include "runtime/Random.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <future>
#include <numeric>

namespace sluice {

/// Synthetic data repeat after this many batches, so that a model can learn them by heart and its loss falls.
static constexpr int64_t syntheticBatches = 8;

/// The part of a staging tensor that holds one sample.
static Tensor oneSample(const Tensor &staging) {
  Tensor sample = staging;
  sample.shape.dims[0] = 1;
  return sample;
}

/// "input.npy" for the only input, else the input's name; characters that could leave the folder become '_'.
static std::string fileName(const Program &program, int input) {
  bool hasTarget = !std::strcmp(program.inputs[program.inputCount - 1].name, "target");
  int models = program.inputCount - (hasTarget ? 1 : 0);
  if (models == 1 && input == 0)
    return "input.npy";
  std::string name = program.inputs[input].name;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-", c))
      c = '_';
  return name + ".npy";
}

Dataset::Dataset(const std::string &where, const Program &program, uint64_t seed, bool shuffle)
    : program(program), seed(seed), shuffle(shuffle) {
  for (int i = 0; i < program.inputCount; ++i) {
    const Tensor &staging = program.inputs[i].staging;
    if (staging.shape.rank < 1 || staging.shape[0] != program.batch)
      throw std::logic_error(
          text("input '", program.inputs[i].name, "' does not have the batch as its first dimension"));
  }
  if (where == "synthetic")
    count = syntheticBatches * program.batch;
  else
    openFiles(where);
  if (count < program.batch)
    throw DataError(text(where, " holds ", count, " samples, one batch takes ", program.batch));
  if (count > UINT32_MAX && shuffle)
    throw DataError(text(where, " holds ", count, " samples, --shuffle can order ", UINT32_MAX));
}

void Dataset::openFiles(const std::string &folder) {
  for (int i = 0; i < program.inputCount; ++i) {
    files.emplace_back(joinPath(folder, fileName(program, i)));
    checkFile(files.back(), program.inputs[i]);
    int64_t samples = files.back().shape()[0];
    if (i == 0)
      count = samples;
    else if (samples != count)
      throw DataError(text(files.back().path(), " holds ", samples, " samples, ", files[0].path(), " holds ", count));
    checkAllRanges(i);
  }
}

std::vector<std::string> Dataset::paths() const {
  std::vector<std::string> list;
  for (const NpyFile &file : files)
    list.push_back(file.path());
  return list;
}

/// Before training rather than hours into it; gather() checks again, for the file may change meanwhile.
void Dataset::checkAllRanges(int input) const {
  const Input &in = program.inputs[input];
  if (in.staging.type != DataType::I64 || in.upperBound <= 0)
    return;
  size_t sampleBytes = oneSample(in.staging).bytes();
  int64_t atOnce = static_cast<int64_t>(std::max<size_t>(1, (size_t{1} << 18) / std::max<size_t>(1, sampleBytes)));
  std::vector<char> buffer;
  for (int64_t first = 0; first < count; first += atOnce) {
    int64_t samples = std::min(atOnce, count - first);
    readSamples(input, first, samples, buffer);
    for (int64_t i = 0; i < samples; ++i)
      checkRange(input, first + i, buffer.data() + static_cast<size_t>(i) * sampleBytes);
  }
}

/// Integers of the file as those of the staging tensor, which are wider.
template <typename T> static void widen(std::vector<char> &buffer, int64_t elements) {
  for (int64_t i = elements; i-- > 0;) {
    T narrow;
    std::memcpy(&narrow, buffer.data() + static_cast<size_t>(i) * sizeof narrow, sizeof narrow);
    const int64_t wide = narrow;
    std::memcpy(buffer.data() + static_cast<size_t>(i) * sizeof wide, &wide, sizeof wide);
  }
}

/// Samples [first, first + samples) in file order, of the staging tensor's element type.
void Dataset::readSamples(int input, int64_t first, int64_t samples, std::vector<char> &buffer) const {
  const NpyFile &file = files[static_cast<size_t>(input)];
  const Tensor sample = oneSample(program.inputs[input].staging);
  buffer.resize(static_cast<size_t>(samples) * sample.bytes());
  file.read(first, samples, buffer.data());
  if (file.type() == sample.type)
    return;
  const int64_t elements = samples * sample.shape.elements();
  if (file.type() == DataType::I32)
    widen<int32_t>(buffer, elements);
  else
    widen<uint8_t>(buffer, elements);
}

/// Files of smaller integers, and of booleans, serve as I64.
static bool serves(DataType file, DataType input) {
  return file == input || (input == DataType::I64 && (file == DataType::I32 || file == DataType::U8));
}

void Dataset::checkFile(const NpyFile &file, const Input &input) const {
  const Tensor &expected = input.staging;
  const std::vector<int64_t> &dims = file.shape();
  bool fits = dims.size() == static_cast<size_t>(expected.shape.rank);
  for (size_t i = 1; fits && i < dims.size(); ++i)
    fits = dims[i] == expected.shape[static_cast<int>(i)];
  if (!serves(file.type(), expected.type) || !fits) {
    std::string rest;
    for (int i = 1; i < expected.shape.rank; ++i)
      rest += text(", ", expected.shape[i]);
    throw DataError(text(file.path(), " is ", typeName(file.type()), " ", numpyShape(dims), ", input '", input.name,
                         "' takes ", typeName(expected.type), " (N", rest.empty() ? "," : rest, ")"));
  }
}

Position Dataset::normalize(Position position) const {
  return position.sample > count - program.batch ? Position{position.epoch + 1, 0} : position;
}

int64_t Dataset::sampleAt(Position position) {
  if (!shuffle)
    return position.sample;
  if (orderEpoch != position.epoch) {
    order.resize(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0u);
    uint64_t key = randomKey(seed, nameKey("shuffle"), static_cast<uint64_t>(position.epoch));
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[randomBits64(key, i) % i]);
    orderEpoch = position.epoch;
  }
  return order[static_cast<size_t>(position.sample)];
}

void Dataset::checkRange(int input, int64_t sample, const void *values) const {
  const Input &in = program.inputs[input];
  if (in.staging.type != DataType::I64 || in.upperBound <= 0)
    return;
  int64_t elements = oneSample(in.staging).shape.elements();
  for (int64_t i = 0; i < elements; ++i) {
    int64_t value;
    std::memcpy(&value, static_cast<const char *>(values) + i * 8, sizeof value);
    if (value != in.ignoreIndex && (value < 0 || value >= in.upperBound))
      throw DataError(text(files[static_cast<size_t>(input)].path(), ": sample ", sample, " holds ", value, ", '",
                           in.name, "' must lie between 0 and ", in.upperBound - 1));
  }
}

/// Floats are uniform with mean 0 and variance 1 (targets of a binary loss 0 or 1), ids uniform below their bound,
/// other integers one: a mask that lets all pass.
void Dataset::drawSample(int input, int64_t sample, void *values) const {
  const Input &in = program.inputs[input];
  Tensor one = oneSample(in.staging);
  uint64_t key = randomKey(seed, nameKey(in.name), static_cast<uint64_t>(sample));
  std::memset(values, 0, one.bytes());
  uint64_t elements = static_cast<uint64_t>(one.shape.elements());
  bool binary =
      !std::strcmp(in.name, "target") && program.lossName && !std::strcmp(program.lossName, "bce-with-logits");
  if (one.type == DataType::F32)
    for (uint64_t i = 0; i < elements; ++i)
      static_cast<float *>(values)[i] =
          binary ? static_cast<float>(randomBits(key, i) >> 31) : 3.4641016f * (uniform(key, i) - 0.5f);
  else if (one.type == DataType::I64)
    for (uint64_t i = 0; i < elements; ++i)
      static_cast<int64_t *>(values)[i] =
          in.upperBound > 0 ? static_cast<int64_t>(randomBits64(key, i) % static_cast<uint64_t>(in.upperBound)) : 1;
}

/// Samples [begin, end) of the batch.
void Dataset::gatherSamples(int input, int64_t begin, int64_t end, std::vector<char> &buffer, char *physical) const {
  const Tensor sample = oneSample(program.inputs[input].staging);
  buffer.resize(sample.bytes());
  for (int64_t n = begin; n < end; ++n) {
    const int64_t index = gathered[static_cast<size_t>(n)];
    if (files.empty()) {
      drawSample(input, index, buffer.data());
    } else {
      readSamples(input, index, 1, buffer);
      checkRange(input, index, buffer.data());
    }
    toPhysical(sample, buffer.data(), physical + static_cast<size_t>(n) * sample.bytes());
  }
}

void Dataset::gather(int input, Position position, void *physical, int threads) {
  constexpr size_t worthAThread = size_t{1} << 18;
  const size_t bytes = program.inputs[input].staging.bytes();
  const int64_t batch = program.batch, parts = std::clamp<int64_t>(static_cast<int64_t>(bytes / worthAThread), 1,
                                                                   std::min<int64_t>(threads, batch));
  gathered.resize(static_cast<size_t>(batch));
  for (int64_t n = 0; n < batch; ++n)
    gathered[static_cast<size_t>(n)] = sampleAt({position.epoch, position.sample + n});
  if (sampleBuffers.size() < static_cast<size_t>(parts))
    sampleBuffers.resize(static_cast<size_t>(parts));
  auto part = [&](int64_t i) {
    gatherSamples(input, batch * i / parts, batch * (i + 1) / parts, sampleBuffers[static_cast<size_t>(i)],
                  static_cast<char *>(physical));
  };
  std::vector<std::future<void>> helpers; // each waits for its thread when it goes
  for (int64_t i = 1; i < parts; ++i)
    helpers.push_back(std::async(std::launch::async, part, i));
  part(0);
  for (std::future<void> &helper : helpers)
    helper.get();
}

} // namespace sluice
