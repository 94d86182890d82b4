// SPDX-License-Identifier: Apache-2.0
// Looks at names when it is opened and at images when they are read.

#include "runtime/data/LabelledImages.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/data/Skipped.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace sluice {

std::vector<std::string> ImageFolder::notes() const {
  return others.count() > 0 ? std::vector<std::string>{others.otherText() + "; they are left out"}
                            : std::vector<std::string>();
}

ImageFolder::ImageFolder(const std::string &folder, const Program &program, bool targets, bool skip,
                         const std::vector<std::string> &known)
    : LabelledImages("imagefolder", program, targets), names(known) {
  addClasses(folder, skip, !known.empty());
  if (files.empty())
    throw DataError(text(folder, " has no ", targets ? "subfolder with " : "", ".jpg, .jpeg or .png",
                         others.count() > 0 ? "; " + others.otherText() : ""));
  checkClasses(folder, static_cast<int64_t>(names.size()));
}

/// New data need no classes, and no names that are known.
void ImageFolder::addClasses(const std::string &folder, bool skip, bool known) {
  Skipped skipped;
  for (const std::string &name : namesIn(folder)) {
    const std::string path = joinPath(folder, name);
    if (!fs::is_directory(path)) {
      if (!targets && isImageName(name)) {
        checkInside(path, folder);
        files.push_back({path, 0});
      } else if (!targets && isOtherImageName(name)) {
        others.note(path);
      }
      continue;
    }
    checkInside(path, folder);
    auto place = std::find(names.begin(), names.end(), name);
    if (known && targets && place == names.end())
      throw DataError(text(path, ": there is no class '", name, "', but ", someOf(names),
                           ": rename the folder, or name all classes with --class"));
    if (!known)
      place = names.insert(names.end(), name);
    const size_t before = files.size();
    addImages(path, place == names.end() ? 0 : place - names.begin());
    if (files.size() > before || !targets)
      continue;
    if (!skip)
      throw DataError(
          text(path, ": the class has no .jpg, .jpeg or .png: ", others.count() > 0 ? others.otherText() + ", " : "",
               "remove the folder, or give --on-bad-data=skip"));
    skipped.note(text("class ", name, " has no images"));
  }
  skipped.sayHowMany(text("the classes of ", folder));
}

void ImageFolder::addImages(const std::string &folder, int64_t label) {
  for (const std::string &name : namesIn(folder))
    if (isImageName(name)) {
      const std::string path = joinPath(folder, name);
      checkInside(path, parentFolder(folder));
      files.push_back({path, label});
    } else if (isOtherImageName(name)) {
      others.note(joinPath(folder, name));
    }
}

std::vector<std::string> ImageFolder::paths() const {
  std::vector<std::string> list;
  for (const File &file : files)
    list.push_back(file.path);
  return list;
}

Image ImageFolder::readImage(int, int64_t sample) const {
  const std::string &path = files[static_cast<size_t>(sample)].path;
  return decodeImage(readImageFile(path), wanted, path);
}

std::string ImageFolder::name(int, int64_t sample) const { return files[static_cast<size_t>(sample)].path; }

} // namespace sluice
