// SPDX-License-Identifier: Apache-2.0
// Samples are read by their number, so that neither order nor share, nor which thread reads them, changes what they
// are. Class ids and indices are range-checked: a kernel would use them as addresses.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/Random.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Mixup.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace sluice {

/// From a shard to the next, samples that are read together change places within this many.
static constexpr size_t shuffleWindow = 1000;

/// X or R,G,B.
static std::vector<double> channelValues(const char *flag, const std::optional<std::string> &words) {
  std::vector<double> values;
  for (const char *at = words ? words->data() : nullptr, *end = words ? at + words->size() : nullptr; at;) {
    const auto [stop, error] = std::from_chars(at, end, values.emplace_back());
    if (error != std::errc() || !std::isfinite(values.back()) || (stop != end && *stop != ','))
      throw UsageError(text(flag, " expects one number or one for each channel (R,G,B), got '", *words, "'"));
    at = stop == end ? nullptr : stop + 1;
  }
  if (values.size() != 0 && values.size() != 1 && values.size() != 3)
    throw UsageError(text(flag, " expects one number or three, got ", values.size()));
  return values;
}

DataOptions dataOptions(const Arguments &arguments, uint64_t seed) {
  DataOptions options;
  options.seed = seed;
  // Beside a GPU's step the other cores are free; on the host they compute.
  const int64_t usual = runtimeTarget() == Target::Cuda
                            ? arguments.threads.value_or(std::max(1u, std::thread::hardware_concurrency()))
                            : 1;
  options.workers = static_cast<int>(arguments.workers.value_or(usual));
  options.validationPercent = arguments.validationSplit.value_or(0);
  options.images.augment = arguments.augment.value_or("");
  options.images.mean = channelValues("--mean", arguments.mean);
  options.images.std = channelValues("--std", arguments.std);
  if (std::count_if(options.images.std.begin(), options.images.std.end(), [](double value) { return value <= 0; }))
    throw UsageError(text("--std expects numbers above 0, got '", *arguments.std, "'"));
  options.skipBad = arguments.onBadData == "skip";
  return options;
}

Dataset::Dataset(const DataOptions &options, const Program &program) : program(program), options(options) {
  for (int i = 0; i < program.inputCount; ++i) {
    const Tensor &staging = program.inputs[i].staging;
    if (staging.shape.rank < 1 || staging.shape[0] != program.batch)
      throw std::logic_error(
          text("input '", program.inputs[i].name, "' does not have the batch as its first dimension"));
  }
  source = openSource({options.where, options.seed, options.targets, options.skipBad}, program);
  preparePipeline();
  count = source->samples();
  if (count > UINT32_MAX && (options.shuffle || options.share != DataOptions::Share::All))
    throw DataError(text(options.where, " holds ", count, " samples, ",
                         options.shuffle ? "--shuffle can order " : "--validation-split can split ", UINT32_MAX));
  takeShare();
  const bool split = options.share != DataOptions::Share::All;
  const char *part = !split                                            ? " holds "
                     : options.share == DataOptions::Share::Validation ? ": the validation part holds "
                                                                       : ": the training part holds ";
  if (count < (options.padded ? 1 : program.batch))
    throw DataError(text(options.where, part, count, " samples, one batch takes ", program.batch));
  checkAllRanges();
}

void Dataset::preparePipeline() {
  if (const int input = source->imageInput(); input >= 0) {
    pipeline.emplace(options.images, program.inputs[input]);
    return;
  }
  const ImageOptions &images = options.images;
  if (!images.augment.empty() || !images.mean.empty() || !images.std.empty())
    throw UsageError(text(!images.augment.empty() ? "--augment"
                          : !images.mean.empty()  ? "--mean"
                                                  : "--std",
                          " is for images of bytes, ", options.where, " has none: prepare the values in the files"));
}

/// Fisher and Yates from the front: values [0, first) are a sample of all, in random order. Each is exchanged with one
/// of the `window` values from it on.
static void shuffleFront(std::vector<uint32_t> &values, size_t first, uint64_t key, size_t window) {
  for (size_t i = 0; i < first; ++i)
    std::swap(values[i], values[i + randomBits64(key, i) % std::min(window, values.size() - i)]);
}

static std::vector<uint32_t> countUp(size_t count) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0u);
  return values;
}

void Dataset::takeShare() {
  if (options.share == DataOptions::Share::All)
    return;
  members = countUp(static_cast<size_t>(count));
  const auto validation =
      static_cast<std::ptrdiff_t>(std::floor(static_cast<double>(count) * options.validationPercent / 100));
  shuffleFront(members, static_cast<size_t>(validation), randomKey(options.seed, nameKey("split"), 0), members.size());
  if (options.share == DataOptions::Share::Validation)
    members.erase(members.begin() + validation, members.end());
  else
    members.erase(members.begin(), members.begin() + validation);
  std::sort(members.begin(), members.end());
  count = static_cast<int64_t>(members.size());
}

int64_t Dataset::memberAt(int64_t index) const { return members.empty() ? index : members[static_cast<size_t>(index)]; }

/// Before training rather than hours into it; gather() checks again, for files may change meanwhile.
void Dataset::checkAllRanges() {
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &in = program.inputs[i];
    if (in.staging.type != DataType::I64 || in.upperBound <= 0 || (!options.targets && isTarget(program, i)))
      continue;
    std::vector<char> buffer(sampleBytes(in));
    for (int64_t n = 0; n < count; ++n)
      try {
        source->read(i, memberAt(n), buffer.data());
        checkRange(i, memberAt(n), buffer.data());
      } catch (const DataError &error) {
        if (!options.skipBad)
          throw;
        noteBad(memberAt(n), error.what());
      }
  }
}

void Dataset::checkRange(int input, int64_t sample, const char *values) const {
  const Input &in = program.inputs[input];
  if (in.staging.type != DataType::I64 || in.upperBound <= 0)
    return;
  const int64_t elements = sampleElements(in);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t value;
    std::memcpy(&value, values + i * 8, sizeof value);
    if (value != in.ignoreIndex && (value < 0 || value >= in.upperBound))
      throw DataError(text(source->name(input, sample), " holds ", value, ", '", in.name, "' must lie between 0 and ",
                           in.upperBound - 1));
  }
}

Position Dataset::normalize(Position position) const {
  const int64_t last = options.padded ? count - 1 : count - program.batch;
  return position.sample > last ? Position{position.epoch + 1, 0} : position;
}

/// Samples of a source in parts: the parts in random order, then those of neighbouring parts mixed.
void Dataset::drawOrder(int64_t epoch) {
  const uint64_t key = randomKey(options.seed, nameKey("shuffle"), static_cast<uint64_t>(epoch));
  const std::vector<int64_t> begins = source->begins();
  order = countUp(static_cast<size_t>(count));
  orderEpoch = epoch;
  if (begins.empty()) {
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[randomBits64(key, i) % i]);
    return;
  }
  std::vector<uint32_t> parts = countUp(begins.size());
  shuffleFront(parts, parts.size(), randomKey(options.seed, nameKey("shards"), static_cast<uint64_t>(epoch)),
               parts.size());
  std::vector<size_t> places(begins.size()); // of each part in the order
  for (size_t i = 0; i < parts.size(); ++i)
    places[parts[i]] = i;
  const auto placeOf = [&](uint32_t index) {
    const auto behind = std::upper_bound(begins.begin(), begins.end(), memberAt(index));
    return places[static_cast<size_t>(behind - begins.begin()) - 1];
  };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return placeOf(a) < placeOf(b); });
  shuffleFront(order, order.size(), key, shuffleWindow);
}

int64_t Dataset::indexAt(Position position) {
  const int64_t place = std::min(position.sample, count - 1);
  if (!options.shuffle)
    return place;
  if (orderEpoch != position.epoch)
    drawOrder(position.epoch);
  return order[static_cast<size_t>(place)];
}

void Dataset::noteBad(int64_t sample, const char *reason) {
  constexpr size_t told = 5;
  const std::lock_guard<std::mutex> lock(badMutex);
  if (!bad.insert(sample).second || bad.size() > told)
    return;
  std::fprintf(stderr, "skipped: %s%s\n", printable(reason).c_str(),
               bad.size() == told ? " (more are counted, not told)" : "");
}

/// The first sample from `index` on that can be used, which depends on nothing else.
void Dataset::gatherOne(int64_t index, int64_t epoch, size_t at, const std::vector<void *> &staging,
                        std::vector<char> &buffer) {
  for (int64_t i = 0;; ++i) {
    const int64_t sample = memberAt((index + i) % count);
    try {
      return gatherSample(sample, epoch, at, staging, buffer);
    } catch (const DataError &error) {
      if (!options.skipBad)
        throw;
      noteBad(sample, error.what());
      if (i + 1 == count)
        throw DataError(text(options.where, ": none of ", count, " samples can be used; the last: ", error.what()));
    }
  }
}

void Dataset::gatherSample(int64_t sample, int64_t epoch, size_t at, const std::vector<void *> &staging,
                           std::vector<char> &buffer) const {
  for (int i = 0; i < program.inputCount; ++i) {
    auto *to = static_cast<char *>(staging[static_cast<size_t>(i)]);
    if (!to)
      continue;
    Tensor one = program.inputs[i].staging;
    one.shape.dims[0] = 1;
    to += at * one.bytes();
    if (!options.targets && isTarget(program, i)) {
      std::memset(to, 0, one.bytes());
      continue;
    }
    buffer.resize(one.bytes());
    if (i == source->imageInput()) {
      const uint64_t key = randomKey(options.seed, nameKey("augment"), static_cast<uint64_t>(epoch));
      pipeline->apply(source->readImage(sample), randomKey(key, 0, static_cast<uint64_t>(sample)),
                      source->name(i, sample), reinterpret_cast<float *>(buffer.data()));
    } else {
      source->read(i, sample, buffer.data());
      checkRange(i, sample, buffer.data());
    }
    toPhysical(one, buffer.data(), to);
  }
}

void Dataset::gather(Position position, const std::vector<void *> &staging) {
  std::vector<int64_t> indices(static_cast<size_t>(program.batch));
  for (size_t n = 0; n < indices.size(); ++n)
    indices[n] = indexAt({position.epoch, position.sample + static_cast<int64_t>(n)});

  // Workers take the next sample each. Those before a bad one were taken before it, so that the first is known.
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failedAt = indices.size();
  std::exception_ptr failure;
  const auto work = [&] {
    std::vector<char> buffer;
    for (size_t n; (n = next++) < indices.size();)
      try {
        gatherOne(indices[n], position.epoch, n, staging, buffer);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (n < failedAt)
          failedAt = n, failure = std::current_exception();
        next = indices.size();
      }
  };
  constexpr size_t worthAThread = size_t{1} << 18;
  size_t bytes = 0;
  for (int i = 0; i < program.inputCount; ++i)
    bytes += program.inputs[i].staging.bytes();
  const auto threads =
      std::min({static_cast<size_t>(std::max(1, options.workers)), indices.size(), 1 + bytes / worthAThread});
  std::vector<std::future<void>> helpers; // each waits for its thread when it goes
  for (size_t i = 1; i < threads; ++i)
    helpers.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void> &helper : helpers)
    helper.get();
  if (failure)
    std::rethrow_exception(failure);
  for (int i = 0; i < program.inputCount && options.mixup > 0; ++i)
    if (const Tensor &mixed = program.inputs[i].staging; mixed.type == DataType::F32 && staging[static_cast<size_t>(i)])
      mixSamples(static_cast<float *>(staging[static_cast<size_t>(i)]), program.batch,
                 static_cast<int64_t>(mixed.bytes() / sizeof(float)) / program.batch, mixShare(position));
}

float Dataset::mixShare(Position position) const {
  const uint64_t epoch = randomKey(options.seed, nameKey("mixup"), static_cast<uint64_t>(position.epoch));
  return options.mixup > 0 ? mixupShare(options.mixup, randomKey(epoch, 0, static_cast<uint64_t>(position.sample))) : 1;
}

} // namespace sluice
