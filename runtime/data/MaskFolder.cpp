// SPDX-License-Identifier: Apache-2.0
// Images and masks are matched by their names when the folders are opened, and read when their sample is.

#include "runtime/data/MaskFolder.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/data/Skipped.h"
#include "runtime/files/File.h"
#include "runtime/files/Npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace sluice {

MaskWords::MaskWords(const std::string &where) : images(where) {
  const std::pair<const char *, std::string *> options[] = {
      {",masks=", &masks}, {",suffix=", &suffix}, {",values=", &values}};
  for (;;) { // from the end, so that what stands before the first option is a path whatever is in it
    size_t last = std::string::npos;
    const std::pair<const char *, std::string *> *found = nullptr;
    for (const auto &option : options)
      if (const size_t at = images.rfind(option.first);
          at != std::string::npos && (last == std::string::npos || at > last))
        last = at, found = &option;
    if (!found)
      return;
    const std::string said = images.substr(last + std::strlen(found->first));
    const std::string name(found->first + 1, std::strlen(found->first) - 2);
    if (said.empty() || !found->second->empty())
      throw UsageError(
          sluice::text("segmentation:", where, ": ", name, said.empty() ? " names nothing" : " is given twice"));
    *found->second = said;
    images.resize(last);
  }
}

std::string MaskWords::text() const {
  return sluice::text(images, masks.empty() ? "" : ",masks=" + masks, suffix.empty() ? "" : ",suffix=" + suffix,
                      values.empty() ? "" : ",values=" + values);
}

MaskFolder::MaskFolder(const std::string &where, const Program &program, const SourceOptions &options)
    : program(program), words(where), targets(options.targets), skip(options.skipBad) {
  checkProgram();
  if (targets && words.masks.empty())
    throw UsageError(
        text("segmentation:", where, " needs the folder of masks: segmentation:", words.images, ",masks=FOLDER"));
  readValues();
  const Names images = findImages();
  addPairs(images, targets ? findMasks() : Names());
}

void MaskFolder::checkProgram() const {
  const Input &image = program.inputs[0], &mask = program.inputs[program.inputCount - 1];
  if (program.inputCount > 2 || (targets && program.inputCount != 2))
    throw DataError(
        text("segmentation has an image and a mask, this program takes ", takenBy(program), ": use .npy files"));
  const Shape &shape = image.staging.shape;
  const int64_t channels = shape.rank == 4 ? shape[1] : 1;
  if (image.staging.type != DataType::F32 || shape.rank < 3 || shape.rank > 4 || (channels != 1 && channels != 3))
    throw DataError(text("segmentation has images of 1 or 3 channels, input '", image.name, "' takes ",
                         image.staging.type == DataType::F32 ? "" : "integers, ",
                         numpyShape({shape.dims, shape.dims + shape.rank})));
  if (!targets || program.inputCount < 2)
    return;
  const Shape &size = mask.staging.shape;
  if (size.rank < 3 || sampleElements(mask) != size[size.rank - 2] * size[size.rank - 1])
    throw DataError(text("segmentation has one number for each pixel, '", mask.name, "' takes ",
                         numpyShape({size.dims, size.dims + size.rank}),
                         ", which is no (N, height, width): use .npy files"));
}

[[noreturn]] static void refuseValues(const std::string &values, const std::string &why) {
  throw UsageError(text("segmentation: values=", values, ": ", why,
                        "; it lists the numbers of the classes in masks, from 0 to 65535, as 0:255 or 1-20"));
}

/// V, V:V or V-V, all classes in order.
std::vector<uint16_t> maskNumbers(const std::string &values) {
  std::vector<uint16_t> numbers;
  std::vector<bool> given(65536);
  const auto refuse = [&](const std::string &why) { refuseValues(values, why); };
  for (size_t at = 0; at <= values.size();) {
    const size_t end = std::min(values.find(':', at), values.size());
    const std::string part = values.substr(at, end - at);
    const size_t dash = part.find('-');
    int64_t first = -1, last = -1;
    if (!parseNumber(part.substr(0, dash), first) ||
        !parseNumber(dash == std::string::npos ? part : part.substr(dash + 1), last) || first < 0 || last < first ||
        last > 65535)
      refuse(text("'", part, "' is neither a number nor a range of numbers"));
    for (int64_t value = first; value <= last; ++value) {
      if (given[static_cast<size_t>(value)])
        refuse(text(value, " is given twice"));
      given[static_cast<size_t>(value)] = true;
      numbers.push_back(static_cast<uint16_t>(value));
    }
    at = end + 1;
  }
  return numbers;
}

void MaskFolder::readValues() {
  if (words.values.empty())
    return;
  const std::vector<uint16_t> numbers = maskNumbers(words.values);
  classes.assign(65536, -1);
  for (size_t k = 0; k < numbers.size(); ++k)
    classes[numbers[k]] = static_cast<int32_t>(k);
  const Input &mask = program.inputs[program.inputCount - 1];
  const int64_t most = mask.staging.type == DataType::F32 ? 2 : mask.upperBound;
  if (targets && most > 0 && static_cast<int64_t>(numbers.size()) > most)
    refuseValues(words.values, text("these are ", numbers.size(), " classes, the model tells ", most, " apart"));
}

/// In one folder for both, PNG files are masks, or those of them that end in the suffix.
bool MaskFolder::isMaskName(const std::string &name) const {
  const std::string stem = fs::path(name).stem().string();
  return isPngName(name) && stem.size() >= words.suffix.size() &&
         stem.compare(stem.size() - words.suffix.size(), std::string::npos, words.suffix) == 0;
}

/// Throws DataError for a second file of a name.
static void addName(std::map<std::string, std::string> &names, const std::string &stem, const std::string &path) {
  const auto [place, added] = names.emplace(stem, path);
  if (!added)
    throw DataError(
        text(place->second, " and ", path, " have one name: which of them belongs to '", stem, "'? Remove the other"));
}

MaskFolder::Names MaskFolder::findImages() {
  Names images;
  std::error_code error;
  const bool together = !words.masks.empty() && fs::equivalent(words.images, words.masks, error);
  for (const std::string &name : namesIn(words.images)) {
    const std::string path = joinPath(words.images, name);
    folders += fs::is_directory(path, error) && !(targets && fs::equivalent(path, words.masks, error));
    if (isOtherImageName(name))
      others.note(path);
    if (!isImageName(name) || (together && isMaskName(name)))
      continue;
    checkInside(path, words.images);
    addName(images, fs::path(name).stem().string(), path);
  }
  if (images.empty())
    throw DataError(text(words.images, " has no .jpg, .jpeg or .png",
                         others.count() > 0 ? "; " + others.otherText() : "", folders > 0 ? "; " + foldersText() : ""));
  return images;
}

MaskFolder::Names MaskFolder::findMasks() {
  Names masks;
  for (const std::string &name : namesIn(words.masks)) {
    if (!isMaskName(name))
      continue;
    const std::string path = joinPath(words.masks, name), stem = fs::path(name).stem().string();
    checkInside(path, words.masks);
    addName(masks, stem.substr(0, stem.size() - words.suffix.size()), path);
  }
  if (masks.empty())
    throw DataError(text(words.masks, " has no masks", words.suffix.empty() ? "" : " that end in " + words.suffix,
                         ": .png of class numbers, one with the name of each image"));
  return masks;
}

void MaskFolder::addPairs(const Names &images, const Names &masks) {
  CountedPaths alone, masksAlone;
  std::string guess;
  for (const auto &[stem, path] : images) {
    const auto mask = masks.find(stem);
    if (targets && mask == masks.end()) {
      alone.note(path);
      const auto longer = masks.lower_bound(stem);
      if (guess.empty() && longer != masks.end() && longer->first.compare(0, stem.size(), stem) == 0)
        guess = text(": is ", longer->second, " the mask of ", path,
                     "? Then add ,suffix=", longer->first.substr(stem.size()) + words.suffix);
    } else {
      pairs.push_back({path, targets ? mask->second : ""});
    }
  }
  for (const auto &[stem, path] : masks)
    if (images.find(stem) == images.end())
      masksAlone.note(path);
  left = alone.count() + masksAlone.count();
  if (left > 0 && (!skip || pairs.empty()))
    throw DataError(text(alone.count(), " of ", images.size(), " images in ", words.images, " have no mask in ",
                         words.masks, alone.count() > 0 ? " (" + alone.names() + ")" : "", ", ", masksAlone.count(),
                         " of ", masks.size(), " masks no image",
                         masksAlone.count() > 0 ? " (" + masksAlone.names() + ")" : "", guess,
                         skip ? "" : "; --on-bad-data=skip leaves both out"));
}

std::string MaskFolder::foldersText() const {
  return text(folders, folders == 1 ? " folder in " : " folders in ", words.images, " not looked into");
}

std::vector<std::string> MaskFolder::leftOut() const {
  std::vector<std::string> list;
  if (others.count() > 0)
    list.push_back(others.otherText() + "; they are left out");
  if (left > 0)
    list.push_back(text(words.images, ",masks=", words.masks, ": ", pairs.size(), " images have a mask, ", left,
                        left == 1 ? " file without a partner is" : " files without a partner are", " left out"));
  if (folders > 0)
    list.push_back(foldersText());
  return list;
}

std::vector<std::string> MaskFolder::paths() const {
  std::vector<std::string> list;
  for (const Pair &pair : pairs) {
    list.push_back(pair.image);
    if (targets)
      list.push_back(pair.mask);
  }
  return list;
}

std::optional<ImageSize> MaskFolder::imageSizeOf(int64_t sample) const {
  return sizeOfImageFile(pairs[static_cast<size_t>(sample)].image);
}

Image MaskFolder::readImage(int, int64_t sample) const {
  const std::string &path = pairs[static_cast<size_t>(sample)].image;
  const Shape &shape = program.inputs[0].staging.shape;
  return decodeImage(readImageFile(path), shape.rank == 4 ? static_cast<int>(shape[1]) : 1, path);
}

/// What a model that takes floats and one that takes classes make of a pixel's number.
int64_t MaskFolder::classAt(uint16_t value, int64_t pixel, int width, const std::string &path) const {
  const Input &input = program.inputs[program.inputCount - 1];
  const int64_t found = classes.empty() ? value : classes[value];
  const bool floats = input.staging.type == DataType::F32;
  if ((floats ? found < 0 || found > 1 : found < 0) && value == input.ignoreIndex)
    return value;
  if (found >= 0 && (!floats || found <= 1))
    return found;
  throw DataError(text(
      path, " holds ", value, " at column ", pixel % width, ", row ", pixel / width, ", ",
      classes.empty() ? text("'", input.name, "' takes 0 and 1: ,values=0:", value, " after the folders makes 1 of it")
                      : text("which is none of values=", words.values),
      floats ? text("; a number that counts as neither is that of sluicec --ignore-index=", value) : ""));
}

PlaneValues MaskFolder::readPlanes(int input, int64_t sample) const {
  const std::string &path = pairs[static_cast<size_t>(sample)].mask;
  const LabelMap mask = decodeMask(readImageFile(path), path);
  const DataType type = program.inputs[input].staging.type;
  PlaneValues planes{{mask.width, mask.height}, 1, std::vector<char>(mask.values.size() * byteWidth(type))};
  for (size_t i = 0; i < mask.values.size(); ++i) {
    const int64_t value = classAt(mask.values[i], static_cast<int64_t>(i), mask.width, path);
    const auto real = static_cast<float>(value);
    if (type == DataType::F32)
      std::memcpy(planes.values.data() + i * sizeof real, &real, sizeof real);
    else
      std::memcpy(planes.values.data() + i * sizeof value, &value, sizeof value);
  }
  return planes;
}

std::string MaskFolder::fileStem(int64_t sample) const {
  return fs::path(pairs[static_cast<size_t>(sample)].image).stem().string();
}

std::string MaskFolder::name(int input, int64_t sample) const {
  const Pair &pair = pairs[static_cast<size_t>(sample)];
  return input == 0 || !targets ? pair.image : pair.mask;
}

} // namespace sluice
