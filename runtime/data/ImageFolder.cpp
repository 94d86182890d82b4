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
  std::vector<std::string> list = leftOut();
  if (!numbering.empty())
    list.insert(list.begin(), numbering);
  return list;
}

std::vector<std::string> ImageFolder::leftOut() const {
  if (others.count() == 0)
    return {};
  return {others.otherText() + "; they are left out"};
}

std::vector<std::string> ImageFolder::warnings() const {
  std::vector<std::string> list;
  if (guessed)
    list.push_back(
        text(folder, " has ", names.size(), names.size() == 1 ? " folder" : " folders", ", the model tells ",
             classesOfProgram(), " classes apart, and nothing says what these are called: the folders are taken for ",
             "the first ones in the order of their names. If a class has no folder, those after it get wrong ",
             "numbers: name all ", classesOfProgram(), " in order with --class NAME"));
  if (nested) {
    const auto train = std::find_if(names.begin(), names.end(), [](const auto &n) { return n.rfind("train", 0) == 0; });
    list.push_back(text(folder, ": no image lies in its folders ", someOf(names), " themselves, only in folders of ",
                        "these, which do not count as classes: if they are to, name the folder that holds them, as ",
                        "imagefolder:", joinPath(folder, train == names.end() ? names[0] : *train)));
  }
  return list;
}

ImageFolder::ImageFolder(const std::string &folder, const Program &program, const SourceOptions &options)
    : LabelledImages("imagefolder", program, options.targets), folder(folder), names(options.classes) {
  if (names.empty() && targets)
    takeOffered(options.offered);
  const bool known = !names.empty();
  addClasses(options.skipBad, known, options.tell);
  nested = targets && !known && !anyDirectly;
  guessed = !known && static_cast<int64_t>(names.size()) < classesOfProgram();
  if (files.empty())
    throw DataError(text(folder, " has no ", targets ? "subfolder with " : "", ".jpg, .jpeg or .png",
                         others.count() > 0 ? "; " + others.otherText() : ""));
  checkClasses(folder, static_cast<int64_t>(names.size()));
}

/// More names than the program has classes are those of a head that it does not have.
void ImageFolder::takeOffered(const std::vector<std::string> &offered) {
  if (offered.empty() || (classesOfProgram() > 0 && static_cast<int64_t>(offered.size()) > classesOfProgram()))
    return;
  std::string other;
  int64_t folders = 0;
  for (const std::string &name : namesIn(folder)) {
    if (!fs::is_directory(joinPath(folder, name)))
      continue;
    ++folders;
    if (other.empty() && std::find(offered.begin(), offered.end(), name) == offered.end())
      other = name;
  }
  if (folders == 0)
    return;
  if (other.empty())
    names = offered;
  numbering = other.empty() ? text(folder, ": its ", folders, folders == 1 ? " class has" : " classes have",
                                   " the numbers that the weights have for these names, of ", offered.size())
                            : text(folder, " has the class '", other, "', which the weights do not know (",
                                   someOf(offered), "): classes are numbered anew, in the order of its folders' names");
}

/// New data need no classes, and no names that are known.
void ImageFolder::addClasses(bool skip, bool known, const Tell &tell) {
  Skipped skipped(tell);
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
    skipped.note(text(path, ": the class has no images"));
  }
  skipped.sayHowMany(text("the classes of ", folder));
}

/// Of a class, in all folders of it: folder after folder, images in the order of their names.
void ImageFolder::addImages(const std::string &ofClass, int64_t label) {
  for (const std::string &inner : foldersIn(ofClass, folder))
    for (const std::string &name : namesIn(inner)) {
      const std::string path = joinPath(inner, name);
      if (fs::is_directory(path))
        continue;
      if (isImageName(name)) {
        checkInside(path, folder);
        files.push_back({path, label});
        anyDirectly |= inner == ofClass;
      } else if (isOtherImageName(name)) {
        others.note(path);
      }
    }
}

std::vector<std::string> ImageFolder::paths() const {
  std::vector<std::string> list;
  for (const File &file : files)
    list.push_back(file.path);
  return list;
}

/// The program has no other target.
ClassNames ImageFolder::classNames() const { return names.empty() ? ClassNames() : ClassNames{{"", names}}; }

Image ImageFolder::readImage(int, int64_t sample) const {
  const std::string &path = files[static_cast<size_t>(sample)].path;
  return decodeImage(readImageFile(path), wanted, path);
}

std::optional<ImageSize> ImageFolder::imageSizeOf(int64_t sample) const {
  return sizeOfImageFile(files[static_cast<size_t>(sample)].path);
}

std::string ImageFolder::name(int, int64_t sample) const { return files[static_cast<size_t>(sample)].path; }

std::string ImageFolder::fileStem(int64_t sample) const {
  return fs::path(name(0, sample)).lexically_relative(folder).replace_extension().string();
}

} // namespace sluice
