// SPDX-License-Identifier: Apache-2.0
// Samples of many sizes: which bucket of shapes each is of, which batches they make, and how they are filled up.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace sluice {

/// Extents of one sample of an input, without the dimension of samples.
static Shape sampleShape(const Input &input) {
  Shape shape = input.staging.shape;
  if (input.shared)
    return shape;
  for (int i = 1; i < shape.rank; ++i)
    shape.dims[i - 1] = shape.dims[i];
  --shape.rank;
  return shape;
}

static std::string textOf(const Shape &shape) {
  std::string list;
  for (int i = 0; i < shape.rank; ++i)
    list += text(i ? " x " : "", shape[i]);
  return shape.rank == 0 ? "one number" : list + " values";
}

/// Whether a dimension of samples of an input has other extents in some shapes.
static bool varies(const std::vector<Program> &shapes, int input, int dimension) {
  const auto extent = [&](const Program &shape) { return sampleShape(shape.inputs[input])[dimension]; };
  return std::any_of(shapes.begin(), shapes.end(),
                     [&](const Program &shape) { return extent(shape) != extent(shapes.front()); });
}

static bool varies(const std::vector<Program> &shapes, int input) {
  for (int i = 0; i < sampleShape(shapes[0].inputs[input]).rank; ++i)
    if (varies(shapes, input, i))
      return true;
  return false;
}

bool Dataset::holds(int bucket, int other) const {
  for (int i = 0; i < program.inputCount; ++i) {
    const Shape own = sampleShape(shape(bucket).inputs[i]), wanted = sampleShape(shape(other).inputs[i]);
    for (int k = 0; k < own.rank; ++k)
      if (own[k] < wanted[k])
        return false;
  }
  return true;
}

/// Images are resized: to the shape whose ratio of sides is nearest, of several the one whose area is.
int Dataset::bucketForImage(ImageSize size) const {
  const auto ratio = [](double width, double height) { return std::log(width / height); };
  const auto distances = [&](int bucket) {
    const ImageSize own = pipelines[static_cast<size_t>(bucket)][static_cast<size_t>(firstImage)]->size();
    const double areas = static_cast<double>(own.width) * own.height / (static_cast<double>(size.width) * size.height);
    return std::pair(std::abs(ratio(own.width, own.height) - ratio(size.width, size.height)),
                     std::abs(std::log(areas)));
  };
  int nearest = 0;
  for (int bucket = 1; bucket < program.bucketCount; ++bucket)
    nearest = distances(bucket) < distances(nearest) ? bucket : nearest;
  return nearest;
}

/// The smallest that holds all inputs of a sample.
int Dataset::bucketFor(int64_t sample) const {
  if (firstImage >= 0) {
    const std::optional<ImageSize> size = source->imageSizeOf(sample);
    return size ? bucketForImage(*size) : static_cast<int>(shapes.size()) - 1;
  }
  const int last = static_cast<int>(shapes.size()) - 1;
  std::vector<std::optional<Shape>> own(static_cast<size_t>(program.inputCount));
  for (int i = 0; i < program.inputCount; ++i) {
    if (program.inputs[i].shared || (!options.targets && !isPredictedFrom(program, i)))
      continue;
    const std::optional<Shape> &shape = own[static_cast<size_t>(i)] = source->shapeOf(i, sample);
    const Shape wanted = sampleShape(program.inputs[i]);
    bool fits = !shape || shape->rank == wanted.rank;
    for (int k = 0; fits && shape && k < wanted.rank; ++k)
      fits = varies(shapes, i, k) || options.filled.count(i) > 0 || (*shape)[k] == wanted[k];
    if (!fits)
      throw DataError(text(source->name(i, sample), ": '", program.inputs[i].name, "' has ", textOf(*shape),
                           ", the model takes ", textOf(wanted),
                           program.bucketCount == 0 ? "; sluicec --dim NAME=N0,N1 compiles it for several" : ""));
  }
  int misfit = -1; // an input that is larger than the largest bucket
  for (int bucket = 0; bucket <= last; ++bucket) {
    misfit = -1;
    for (int i = 0; i < program.inputCount; ++i) {
      const Shape room = sampleShape(shape(bucket).inputs[i]);
      const Shape needed = own[static_cast<size_t>(i)].value_or(sampleShape(program.inputs[i]));
      for (int k = 0; k < room.rank; ++k)
        misfit = misfit < 0 && needed[k] > room[k] ? i : misfit;
    }
    if (misfit < 0)
      return bucket;
  }
  if (options.cuts)
    return last;
  throw DataError(text(source->name(misfit, sample), ": '", program.inputs[misfit].name, "' has ",
                       textOf(*own[static_cast<size_t>(misfit)]), ", which no bucket holds; the largest is ",
                       program.bucketCount > 0 ? program.buckets[last].name : "that of the program",
                       ": --cut-long cuts it, --on-bad-data=skip leaves it out, or compile with a larger one"));
}

/// Of all samples, once: batches follow from it. Where samples have shapes of their own, one bucket is checked as well.
void Dataset::chooseBuckets() {
  bool ownShapes = false;
  for (int i = 0; i < program.inputCount; ++i)
    ownShapes |= source->shapeOf(i, 0).has_value();
  if (program.bucketCount == 0 && !ownShapes)
    return;
  if (options.mixup > 0 && program.bucketCount > 0)
    throw UsageError("--mixup mixes samples of one shape, this program has buckets of several");
  if (count > UINT32_MAX)
    throw DataError(text(options.where, " holds ", count, " samples, buckets can order ", UINT32_MAX));
  preparePadding();
  buckets.assign(static_cast<size_t>(source->samples()), static_cast<uint8_t>(shapes.size() - 1));
  for (int64_t index = 0; index < count; ++index) {
    const int64_t sample = memberAt(index);
    try {
      buckets[static_cast<size_t>(sample)] = static_cast<uint8_t>(bucketFor(sample));
    } catch (const DataError &error) {
      handleBad(sample, error);
    }
  }
  spreadSamples();
}

/// Whenever the samples are others.
void Dataset::spreadSamples() {
  if (buckets.empty())
    return;
  cutEpoch = -1;
  spread.assign(shapes.size(), 0);
  for (int64_t index = 0; index < count; ++index)
    ++spread[buckets[static_cast<size_t>(memberAt(index))]];
  sortedBatches = options.padded ? static_cast<int64_t>(batchesOf(0).list.size()) : sorting().trainingBatches(spread);
}

BucketSorting Dataset::sorting() const {
  BucketSorting sorting{program.batch, {}, [this](uint32_t index) {
                          return static_cast<int>(buckets[static_cast<size_t>(memberAt(index))]);
                        }};
  const int all = static_cast<int>(shapes.size());
  for (int bucket = 0; bucket < all; ++bucket) {
    int larger = bucket + 1;
    while (larger < all && !holds(larger, bucket))
      ++larger;
    sorting.larger.push_back(larger < all ? larger : -1);
  }
  return sorting;
}

const BucketBatches &Dataset::batchesOf(int64_t epoch) {
  if (cutEpoch == epoch || (cutEpoch >= 0 && !options.shuffle))
    return cut;
  if (options.shuffle) {
    drawOrder(epoch);
  } else {
    order.resize(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0u);
  }
  const uint64_t key = randomKey(options.seed, nameKey("batches"), static_cast<uint64_t>(epoch));
  cut = !options.padded   ? sorting().forTraining(order, options.shuffle ? std::optional(key) : std::nullopt)
        : options.targets ? sorting().sorted(order)
                          : sorting().inOrder(order);
  cutEpoch = epoch;
  return cut;
}

std::vector<BucketBatch> Dataset::forwardBatches() {
  if (!buckets.empty())
    return batchesOf(0).list;
  std::vector<BucketBatch> batches;
  for (int64_t first = 0; first < count; first += program.batch)
    batches.push_back({first, std::min(program.batch, count - first), 0});
  return batches;
}

int Dataset::bucketAt(Position position) {
  return buckets.empty() ? 0 : batchesOf(position.epoch).at(position.sample).bucket;
}

/// What fills up is checked as what is read: a kernel takes ids for addresses.
void Dataset::preparePadding() {
  std::map<std::string, int64_t> said = options.padding;
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &in = program.inputs[i];
    const auto found = said.find(in.name);
    const bool counts = in.ignoreIndex == Loss::none;
    const int64_t value = found != said.end() ? found->second : counts ? 0 : in.ignoreIndex;
    if (found != said.end())
      said.erase(found);
    if (in.staging.type == DataType::I64 && in.isBounded() && (value < in.lowerBound || value >= in.upperBound) &&
        (counts || value != in.ignoreIndex) && varies(shapes, i))
      throw UsageError(text("'", in.name, "' is filled up with ", value, ", but takes numbers from ", in.lowerBound,
                            " to ", in.upperBound - 1, ": say --pad ", in.name, "=N"));
    std::vector<char> &element = fill.emplace_back(byteWidth(in.staging.type));
    const auto real = static_cast<float>(value);
    std::memcpy(element.data(), in.staging.type == DataType::F32 ? static_cast<const void *>(&real) : &value,
                element.size());
  }
  if (!said.empty())
    throw UsageError(
        text("--pad ", said.begin()->first, "=", said.begin()->second, ": the inputs are ", takenBy(program)));
}

/// Rows of the last dimension of `own` into those of `room`, which hold what fills up; what has no room is left out.
static void place(const char *from, const Shape &own, char *to, const Shape &room, size_t width) {
  if (room.rank == 0) {
    std::memcpy(to, from, width);
    return;
  }
  const auto rest = [](const Shape &shape) {
    int64_t elements = 1;
    for (int i = 1; i < shape.rank; ++i)
      elements *= shape[i];
    return static_cast<size_t>(elements);
  };
  const auto inner = [](Shape shape) {
    for (int i = 1; i < shape.rank; ++i)
      shape.dims[i - 1] = shape.dims[i];
    --shape.rank;
    return shape;
  };
  const int64_t rows = std::min(own[0], room[0]);
  if (room.rank == 1) {
    std::memcpy(to, from, static_cast<size_t>(rows) * width);
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    place(from + static_cast<size_t>(row) * rest(own) * width, inner(own),
          to + static_cast<size_t>(row) * rest(room) * width, inner(room), width);
}

/// Values of one sample, filled up to `one`, the input's tensor of one sample.
void Dataset::readSample(int input, int64_t sample, const Tensor &one, std::vector<char> &buffer) const {
  const std::optional<Shape> own = buckets.empty() ? std::nullopt : source->shapeOf(input, sample);
  if (!own) {
    source->read(input, sample, buffer.data());
    checkValues(input, sample, buffer.data(), one.shape.elements());
    return;
  }
  const size_t width = byteWidth(one.type);
  std::vector<char> values(static_cast<size_t>(own->elements()) * width);
  source->read(input, sample, values.data());
  checkValues(input, sample, values.data(), own->elements());
  const std::vector<char> &element = fill[static_cast<size_t>(input)];
  for (size_t at = 0; at < buffer.size(); at += width)
    std::memcpy(buffer.data() + at, element.data(), width);
  Input as = program.inputs[input];
  as.staging = one;
  const Shape room = sampleShape(as);
  place(values.data(), *own, buffer.data(), room, width);
  if (isTarget(program, input) || !varies(shapes, input))
    return;
  int64_t kept = 1;
  for (int i = 0; i < room.rank; ++i)
    kept *= std::min(room[i], (*own)[i]);
  ownElements += kept;
  allElements += room.elements();
}

std::vector<std::string> Dataset::notes() const {
  std::vector<std::string> notes = source->notes();
  if (program.bucketCount == 0)
    return notes;
  std::string list;
  for (int bucket = 0; bucket < program.bucketCount; ++bucket)
    list += text(bucket ? ", " : "", program.buckets[bucket].name, ": ", spread[static_cast<size_t>(bucket)]);
  notes.push_back(text(options.where, " in buckets: ", list, " samples"));
  return notes;
}

} // namespace sluice
