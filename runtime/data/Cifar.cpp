// SPDX-License-Identifier: Apache-2.0
// The binary version that https://www.cs.toronto.edu/~kriz/cifar.html describes.

#include "runtime/data/LabelledImages.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <filesystem>

namespace sluice {

static constexpr int side = 32, planeBytes = side * side, imageBytes = 3 * planeBytes;

Cifar::Cifar(int classes, const std::string &path, const Program &program, bool targets)
    : LabelledImages(text("cifar", classes), program, targets), labelBytes(classes == 10 ? 1 : 2) {
  if (!std::filesystem::is_directory(path)) {
    files.emplace_back(path);
  } else if (classes == 10) {
    for (int i = 1; i <= 5; ++i)
      files.emplace_back(joinPath(path, text("data_batch_", i, ".bin")));
  } else {
    files.emplace_back(joinPath(path, "train.bin"));
  }
  const auto record = static_cast<uint64_t>(labelBytes + imageBytes);
  for (const InputFile &file : files) {
    if (file.size() % record != 0)
      throw DataError(text(file.path(), " has ", file.size(), " bytes, which are no whole number of records of ",
                           record, ": is it cut short, or no cifar", classes, "?"));
    begins.push_back(count);
    count += static_cast<int64_t>(file.size() / record);
  }
  checkClasses(path, classes);
}

std::vector<std::string> Cifar::paths() const {
  std::vector<std::string> list;
  for (const InputFile &file : files)
    list.push_back(file.path());
  return list;
}

/// The file and the offset in it.
std::pair<const InputFile *, uint64_t> Cifar::find(int64_t sample) const {
  const auto part = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), sample) - begins.begin()) - 1;
  return {&files[part], static_cast<uint64_t>(sample - begins[part]) * static_cast<uint64_t>(labelBytes + imageBytes)};
}

int64_t Cifar::label(int64_t sample) const {
  const auto [file, offset] = find(sample);
  uint8_t value = 0;
  file->readAt(offset + static_cast<uint64_t>(labelBytes) - 1, &value, 1);
  return value;
}

Image Cifar::readImage(int, int64_t sample) const {
  const auto [file, offset] = find(sample);
  uint8_t planes[imageBytes];
  file->readAt(offset + static_cast<uint64_t>(labelBytes), planes, sizeof planes);
  Image image = fromPlanes(planes, side, side, 3);
  return wanted == 1 ? toGrey(image) : image;
}

std::string Cifar::name(int, int64_t sample) const { return text(find(sample).first->path(), ": sample ", sample); }

} // namespace sluice
