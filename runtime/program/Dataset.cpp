// SPDX-License-Identifier: Apache-2.0
// Samples are read by their number, so that neither order nor share, nor which thread reads them, changes what they
// are. Class ids and indices are range-checked: a kernel would use them as addresses.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/Random.h"
#include "runtime/program/Mixup.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <numeric>
#include <stdexcept>

namespace sluice {

/// From a shard to the next, samples that are read together change places within this many.
static constexpr size_t shuffleWindow = 1000;

Dataset::Dataset(const DataOptions &options, const Program &program)
    : Dataset(
          options, program,
          openSource({options.where, options.seed, options.targets, options.skipBad, options.keepNan, options.inputs,
                      options.images.carried, options.columns, options.classes, options.offered, options.tell},
                     program)) {}

Dataset::Dataset(const DataOptions &options, const Program &program, std::unique_ptr<SampleSource> samples)
    : program(program), shapes(shapesOf(program)), options(options), source(std::move(samples)) {
  for (int i = 0; i < program.inputCount; ++i) {
    const Tensor &staging = program.inputs[i].staging;
    if (!program.inputs[i].shared && (staging.shape.rank < 1 || staging.shape[0] != program.batch))
      throw std::logic_error(
          text("input '", program.inputs[i].name, "' does not have the batch as its first dimension"));
  }
  preparePipelines();
  count = source->samples();
  if (count > UINT32_MAX && (options.shuffle || options.share != DataOptions::Share::All))
    throw DataError(text(options.where, " holds ", count, " samples, ",
                         options.shuffle ? "--shuffle can order " : "--validation-split can split ", UINT32_MAX));
  takeShare();
  const bool split = options.share != DataOptions::Share::All;
  const char *part = !split                                            ? " holds "
                     : options.share == DataOptions::Share::Validation ? ": the validation part holds "
                                                                       : ": the training part holds ";
  if (options.padded && split && count == 0)
    throw DataError(text(options.where, part, "no sample: ", options.validationPercent, " % of ", source->samples(),
                         " are less than one"));
  std::string left;
  for (const std::string &what : source->leftOut())
    left += "; " + what;
  if (count < (options.padded ? 1 : program.batch))
    throw DataError(text(options.where, part, count, " samples, one batch takes ", program.batch, left));
  chooseBuckets();
  checkAllRanges();
  if (options.padded || !buckets.empty()) // the next one may be of another shape
    leaveOutBad();
  if (batches() == 0)
    throw DataError(
        text(options.where, part, count, " samples, of which no bucket has a batch of ", program.batch, left));
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

std::string Dataset::fileStem(int64_t index) const {
  const int64_t sample = memberAt(index);
  if (const std::string stem = source->fileStem(sample); !stem.empty())
    return stem;
  const std::string number = std::to_string(sample), last = std::to_string(source->samples() - 1);
  return std::string(last.size() - number.size(), '0') + number;
}

std::vector<std::string> Dataset::warnings() const {
  std::vector<std::string> list = source->warnings();
  const auto classes = static_cast<int64_t>(classesSeen.size());
  if (byClass && classes > 1 && count >= 2 * program.batch && count >= 2 * classes && !options.shuffle &&
      !options.padded)
    list.push_back(text(options.where, " holds its samples class by class, so that batches see one class ",
                        "after the other: give --shuffle"));
  return list;
}

/// Batches of samples in buckets begin at multiples of their size, wherever a run of another batch size has ended.
Position Dataset::normalize(Position position) const {
  if (!buckets.empty() && !options.padded)
    position.sample -= position.sample % program.batch;
  const int64_t last =
      options.padded ? count - 1 : (buckets.empty() ? count : batches() * program.batch) - program.batch;
  return position.sample > last ? Position{position.epoch + 1, 0} : position;
}

Position Dataset::after(Position position, int64_t batches) const {
  for (; batches > 0; --batches)
    position = normalize({position.epoch, position.sample + program.batch});
  return position;
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

/// Of a sample of the batch that begins at `first`.
int64_t Dataset::indexAt(Position first, int64_t number) {
  if (!buckets.empty()) {
    const BucketBatches &batches = batchesOf(first.epoch);
    const BucketBatch &batch = batches.at(first.sample);
    const int64_t place = std::min(first.sample + number, batch.first + batch.samples - 1);
    return batches.order[static_cast<size_t>(place)];
  }
  const Position position{first.epoch, first.sample + number};
  const int64_t place = std::min(position.sample, count - 1);
  if (!options.shuffle)
    return place;
  if (orderEpoch != position.epoch)
    drawOrder(position.epoch);
  return order[static_cast<size_t>(place)];
}

/// Notes it, where bad samples are skipped; else throws the error.
void Dataset::handleBad(int64_t sample, const DataError &error) {
  if (!options.skipBad)
    throw DataError(text(error.what(), options.noSkip.empty() ? "" : "; ", options.noSkip));
  const std::lock_guard<std::mutex> lock(badMutex);
  if (bad.insert(sample).second)
    told.note(error.what());
}

bool Dataset::leaveOutBad() {
  const int64_t found = skipped() - leftOut;
  if (found == 0)
    return false;
  if (found == count)
    throw DataError(text(options.where, ": none of ", samplesWithBad(), " samples can be used"));
  if (members.empty()) {
    if (count > UINT32_MAX)
      throw DataError(
          text(options.where, " holds ", count, " samples, --on-bad-data=skip can choose among ", UINT32_MAX));
    members = countUp(static_cast<size_t>(count));
  }
  members.erase(std::remove_if(members.begin(), members.end(), [&](uint32_t sample) { return bad.count(sample) > 0; }),
                members.end());
  leftOut += found;
  count -= found;
  instead.clear();
  spreadSamples();
  return true;
}

/// The first sample from `index` on that is not known to be bad.
int64_t Dataset::behindBad(int64_t index) {
  const std::lock_guard<std::mutex> lock(badMutex);
  const auto known = instead.find(index);
  return known == instead.end() ? index : known->second;
}

/// The first sample from `index` on that can be used, which depends on nothing else but the batch's shape.
void Dataset::gatherOne(int64_t index, const Place &place, size_t at, std::vector<char> &buffer) {
  std::vector<int64_t> passed;
  for (int64_t now = index, next;; now = next) {
    now = behindBad(now);
    const int64_t sample = memberAt(now);
    next = (now + 1) % count;
    const auto whyNone = [&](const std::string &last) {
      return DataError(text(options.where, ": none of ", count, " samples can be used; the last: ", last));
    };
    try {
      if (!buckets.empty() && !holds(place.bucket, buckets[static_cast<size_t>(sample)])) {
        if (next == index)
          throw whyNone(source->name(0, sample) + " is too large for its batch");
        continue;
      }
      const std::optional<ImageSize> size = gatherSample(sample, place, at, buffer);
      const std::lock_guard<std::mutex> lock(badMutex);
      if (size && options.keepSizes)
        sizes[sample] = *size;
      if (buckets.empty())
        for (const int64_t other : passed)
          instead[other] = now; // so that no part of the data is walked through twice
      return;
    } catch (const DataError &error) {
      handleBad(sample, error);
      passed.push_back(now);
      if (static_cast<int64_t>(passed.size()) == count || next == index)
        throw whyNone(error.what());
    }
  }
}

std::optional<ImageSize> Dataset::gatherSample(int64_t sample, const Place &place, size_t at,
                                               std::vector<char> &buffer) const {
  std::optional<ImageSize> size;
  for (int i = 0; i < program.inputCount; ++i) {
    auto *to = static_cast<char *>(place.staging[static_cast<size_t>(i)]);
    if (!to)
      continue;
    const bool shared = program.inputs[i].shared;
    if (shared && at > 0)
      continue; // the first sample of the batch brings it
    Tensor one = shape(place.bucket).inputs[i].staging;
    if (!shared)
      one.shape.dims[0] = 1;
    to += at * one.bytes();
    if (!options.targets && !isPredictedFrom(program, i)) {
      std::memset(to, 0, one.bytes());
      continue;
    }
    buffer.resize(one.bytes());
    if (source->form(i) == Form::Planes)
      gatherPlanes(i, sample, place, size, buffer);
    else if (source->form(i) == Form::Image)
      gatherImage(i, sample, place, size, buffer);
    else
      readSample(i, sample, one, buffer);
    toPhysical(one, buffer.data(), to);
  }
  return size;
}

void Dataset::gather(Position position, const std::vector<void *> &staging) {
  const Place place{position.epoch, bucketAt(position), staging};
  std::vector<int64_t> indices(static_cast<size_t>(program.batch));
  for (size_t n = 0; n < indices.size(); ++n)
    indices[n] = indexAt(position, static_cast<int64_t>(n));

  // Workers take the next sample each. Those before a bad one were taken before it, so that the first is known.
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failedAt = indices.size();
  std::exception_ptr failure;
  const auto work = [&] {
    std::vector<char> buffer;
    for (size_t n; (n = next++) < indices.size();)
      try {
        gatherOne(indices[n], place, n, buffer);
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
    bytes += shape(place.bucket).inputs[i].staging.bytes();
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
    if (const Tensor &mixed = program.inputs[i].staging;
        mixed.type == DataType::F32 && staging[static_cast<size_t>(i)] && !program.inputs[i].shared)
      mixSamples(static_cast<float *>(staging[static_cast<size_t>(i)]), program.batch,
                 static_cast<int64_t>(mixed.bytes() / sizeof(float)) / program.batch, mixShare(position));
}

float Dataset::mixShare(Position position) const {
  const uint64_t epoch = randomKey(options.seed, nameKey("mixup"), static_cast<uint64_t>(position.epoch));
  return options.mixup > 0 ? mixupShare(options.mixup, randomKey(epoch, 0, static_cast<uint64_t>(position.sample))) : 1;
}

} // namespace sluice
