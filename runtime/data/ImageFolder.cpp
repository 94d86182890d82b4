// SPDX-License-Identifier: Apache-2.0
// Looks at names when it is opened and at images when they are read.

#include "runtime/data/LabelledImages.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/data/Skipped.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace fs = std::filesystem;

namespace sluice {

/// Names in a folder, sorted by their bytes, hidden ones left out. Throws DataError for one that a terminal cannot
/// show.
static std::vector<std::string> list(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  std::vector<std::string> names;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().string());
  if (error)
    throw DataError(text("cannot list ", folder, ": ", error.message()));
  names.erase(std::remove_if(names.begin(), names.end(), [](const std::string &name) { return name[0] == '.'; }),
              names.end());
  std::sort(names.begin(), names.end());
  for (const std::string &name : names)
    if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c); }))
      throw DataError(text(folder, " has the name '", name, "' with a control character: rename it"));
  return names;
}

static std::string endingOf(const std::string &name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

static bool isImageName(const std::string &name) {
  const std::string ending = endingOf(name);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

/// An image of a format that is not read, which would be missed.
static bool isOtherImageName(const std::string &name) {
  static const char *const endings[] = {".webp", ".bmp", ".gif", ".tif", ".tiff", ".jp2", ".heic", ".avif"};
  const std::string ending = endingOf(name);
  return std::any_of(std::begin(endings), std::end(endings), [&](const char *other) { return ending == other; });
}

void ImageFolder::noteOther(const std::string &path) {
  constexpr size_t told = 10;
  ++otherCount;
  if (others.size() < told)
    others.push_back(path);
}

std::string ImageFolder::otherText() const {
  return text(otherCount, otherCount == 1 ? " image is" : " images are", " neither JPEG nor PNG: ", someOf(others),
              otherCount > static_cast<int64_t>(others.size()) ? ", ..." : "",
              "; convert them, as by mogrify -format png");
}

std::vector<std::string> ImageFolder::notes() const {
  return otherCount > 0 ? std::vector<std::string>{otherText() + "; they are left out"} : std::vector<std::string>();
}

/// A data set may hold links to what it holds, not to what else this machine has.
static void checkInside(const std::string &path, const std::string &root) {
  if (!fs::is_symlink(path))
    return;
  std::error_code error;
  const fs::path real = fs::canonical(path, error), top = fs::canonical(root, error);
  if (error || std::mismatch(top.begin(), top.end(), real.begin(), real.end()).first != top.end())
    throw DataError(text(path, " is a link that leads nowhere or out of ", root, ": copy what it names"));
}

ImageFolder::ImageFolder(const std::string &folder, const Program &program, bool targets, bool skip,
                         const std::vector<std::string> &known)
    : LabelledImages("imagefolder", program, targets), names(known) {
  addClasses(folder, skip, !known.empty());
  if (files.empty())
    throw DataError(text(folder, " has no ", targets ? "subfolder with " : "", ".jpg, .jpeg or .png",
                         otherCount > 0 ? "; " + otherText() : ""));
  checkClasses(folder, static_cast<int64_t>(names.size()));
}

/// New data need no classes, and no names that are known.
void ImageFolder::addClasses(const std::string &folder, bool skip, bool known) {
  Skipped skipped;
  for (const std::string &name : list(folder)) {
    const std::string path = joinPath(folder, name);
    if (!fs::is_directory(path)) {
      if (!targets && isImageName(name)) {
        checkInside(path, folder);
        files.push_back({path, 0});
      } else if (!targets && isOtherImageName(name)) {
        noteOther(path);
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
      throw DataError(text(path, ": the class has no .jpg, .jpeg or .png: ", otherCount > 0 ? otherText() + ", " : "",
                           "remove the folder, or give --on-bad-data=skip"));
    skipped.note(text("class ", name, " has no images"));
  }
  skipped.sayHowMany(text("the classes of ", folder));
}

void ImageFolder::addImages(const std::string &folder, int64_t label) {
  for (const std::string &name : list(folder))
    if (isImageName(name)) {
      const std::string path = joinPath(folder, name);
      checkInside(path, parentFolder(folder));
      files.push_back({path, label});
    } else if (isOtherImageName(name)) {
      noteOther(joinPath(folder, name));
    }
}

std::vector<std::string> ImageFolder::paths() const {
  std::vector<std::string> list;
  for (const File &file : files)
    list.push_back(file.path);
  return list;
}

Image ImageFolder::readImage(int, int64_t sample) const {
  constexpr uint64_t mostBytes = uint64_t{1} << 28;
  const InputFile file(files[static_cast<size_t>(sample)].path);
  if (file.size() > mostBytes)
    throw DataError(text(file.path(), ": ", file.size(), " bytes, an image has at most ", mostBytes));
  std::vector<uint8_t> bytes(file.size());
  file.readAt(0, bytes.data(), bytes.size());
  return decodeImage(bytes, wanted, file.path());
}

std::string ImageFolder::name(int, int64_t sample) const { return files[static_cast<size_t>(sample)].path; }

} // namespace sluice
