// SPDX-License-Identifier: Apache-2.0
// How images, and what lies over their pixels, become inputs: changed alike, or not at all.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <algorithm>

namespace sluice {

void Dataset::preparePipelines() {
  for (const Program &shape : shapes) {
    std::vector<std::optional<ImagePipeline>> &own = pipelines.emplace_back(static_cast<size_t>(program.inputCount));
    for (int i = program.inputCount; i-- > 0;)
      if (source->form(i) == Form::Image) {
        own[static_cast<size_t>(i)].emplace(options.images, shape.inputs[i]);
        firstImage = i;
      }
  }
  const ImageOptions &images = options.images;
  if (firstImage >= 0)
    return checkMoved();
  if (images.carried)
    return;
  if (!images.augment.empty() || !images.mean.empty() || !images.std.empty())
    throw UsageError(text(!images.augment.empty() ? "--augment"
                          : !images.mean.empty()  ? "--mean"
                                                  : "--std",
                          " is for images of bytes, ", options.where, " has none: prepare the values in the files"));
}

/// What moves the images of a sample must move all that lies over them.
void Dataset::checkMoved() const {
  const std::optional<ImageSize> size = source->imageSize();
  const ImagePipeline &first = *pipelines.back()[static_cast<size_t>(firstImage)];
  const auto sizes = [](const Shape &shape) { return text(shape[shape.rank - 2], " x ", shape[shape.rank - 1]); };
  for (int i = 0; size && i < program.inputCount; ++i) {
    const Input &other = program.inputs[i];
    const Shape &shape = other.staging.shape;
    const Form form = source->form(i);
    if (i == firstImage || other.shared || shape.rank < 3 || (!options.targets && !isPredictedFrom(program, i)))
      continue;
    const bool same = shape[shape.rank - 1] == first.size().width && shape[shape.rank - 2] == first.size().height;
    const bool follows = form == Form::Planes || (form == Form::Image && first.moves());
    // A target that lies over no pixels is for the user to say: where it does, nothing would warn of wrong answers.
    const bool stays = isTarget(program, i) && form == Form::Numbers && (first.moves() || *size != first.size());
    if (!stays && (same || !follows))
      continue;
    const std::string raw = text("; --input ", other.name, "=raw if its values lie over no pixels");
    throw DataError(text("'", other.name, "' takes ", sizes(shape), " values, '", program.inputs[firstImage].name, "' ",
                         sizes(program.inputs[firstImage].staging.shape), ", the images have ", size->height, " x ",
                         size->width, ": what lies over an image is changed with it and needs its size in model and ",
                         "files", raw));
  }
}

/// What becomes of an image of an input. All images of a sample draw the same; targets keep their colours.
ImageChanges Dataset::changesOf(int input, ImageSize size, int64_t epoch, int bucket, int64_t sample) const {
  const uint64_t key = randomKey(options.seed, nameKey("augment"), static_cast<uint64_t>(epoch));
  ImageChanges changes = pipelines[static_cast<size_t>(bucket)][static_cast<size_t>(input)]->draw(
      size, randomKey(key, 0, static_cast<uint64_t>(sample)), source->name(input, sample));
  const auto colours = [](const ImageChange &change) { return change.kind == ImageChange::Kind::Colour; };
  if (isTarget(program, input))
    changes.erase(std::remove_if(changes.begin(), changes.end(), colours), changes.end());
  return changes;
}

/// The first image of a sample tells its size.
void Dataset::gatherImage(int input, int64_t sample, const Place &place, std::optional<ImageSize> &size,
                          std::vector<char> &buffer) const {
  Image image = source->readImage(input, sample);
  const ImageSize own{image.width, image.height};
  if (input == firstImage)
    size = own;
  const ImageChanges changes = changesOf(input, own, place.epoch, place.bucket, sample);
  pipelines[static_cast<size_t>(place.bucket)][static_cast<size_t>(input)]->apply(
      std::move(image), changes, source->name(input, sample), reinterpret_cast<float *>(buffer.data()));
}

ImageChanges Dataset::backToImage(int64_t index, ImageSize plane) const {
  const int64_t sample = memberAt(index);
  const auto size = sizes.find(sample);
  const int bucket = buckets.empty() ? 0 : buckets[static_cast<size_t>(sample)];
  return size == sizes.end() ? ImageChanges()
                             : undone(changesOf(firstImage, size->second, 0, bucket, sample), size->second, plane);
}

PlaneValues Dataset::readPlanes(int input, int64_t sample) const {
  PlaneValues planes = source->readPlanes(input, sample);
  const int64_t elements = planes.planes * planes.size.width * planes.size.height;
  checkValues(input, sample, planes.values.data(), elements, planes.size.width);
  return planes;
}

/// The values of planes, changed as the first image is, whose size is known where it was read, and then in the size
/// that the model has them in. Where nothing of an image is, they are what is ignored, if there is such a number, else
/// 0.
void Dataset::gatherPlanes(int input, int64_t sample, const Place &place, std::optional<ImageSize> size,
                           std::vector<char> &buffer) const {
  const Input &in = shape(place.bucket).inputs[input];
  const PlaneValues planes = readPlanes(input, sample);
  if (size && *size != planes.size)
    throw DataError(text(source->name(input, sample), " is ", planes.size.width, " x ", planes.size.height, ", ",
                         source->name(firstImage, sample), " ", size->width, " x ", size->height,
                         ": what lies over an image has its size"));
  ImageChanges changes = changesOf(firstImage, planes.size, place.epoch, place.bucket, sample);
  ImageSize now = planes.size;
  for (const ImageChange &change : changes)
    now = sizeBehind(change, now);
  const Shape &shape = in.staging.shape;
  const ImageSize wanted{static_cast<int>(shape[shape.rank - 1]), static_cast<int>(shape[shape.rank - 2])};
  if (now != wanted)
    changes.push_back({ImageChange::Kind::Resize, {0, 0, now.width, now.height}, wanted.width, wanted.height});
  const int64_t number = in.ignoreIndex == Loss::none ? 0 : in.ignoreIndex;
  const auto real = static_cast<float>(number);
  const void *fill = in.staging.type == DataType::F32 ? static_cast<const void *>(&real) : &number;
  PlaneMove(changes, planes.size)
      .apply(planes.values.data(), planes.planes, byteWidth(in.staging.type), fill, buffer.data());
}

} // namespace sluice
