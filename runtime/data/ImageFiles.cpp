// SPDX-License-Identifier: Apache-2.0
// Folders are listed whole: what they hold is known before training begins.

#include "runtime/data/ImageFiles.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/files/File.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace sluice {

std::vector<std::string> namesIn(const std::string &folder) {
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

bool isPngName(const std::string &name) { return endingOf(name) == ".png"; }

bool isImageName(const std::string &name) {
  const std::string ending = endingOf(name);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool isOtherImageName(const std::string &name) {
  static const char *const endings[] = {".webp", ".bmp", ".gif", ".tif", ".tiff", ".jp2", ".heic", ".avif"};
  const std::string ending = endingOf(name);
  return std::any_of(std::begin(endings), std::end(endings), [&](const char *other) { return ending == other; });
}

void checkInside(const std::string &path, const std::string &root) {
  if (!fs::is_symlink(path))
    return;
  std::error_code error;
  const fs::path real = fs::canonical(path, error), top = fs::canonical(root, error);
  if (error || std::mismatch(top.begin(), top.end(), real.begin(), real.end()).first != top.end())
    throw DataError(text(path, " is a link that leads nowhere or out of ", root, ": copy what it names"));
}

std::vector<std::string> foldersIn(const std::string &folder, const std::string &root) {
  constexpr int deepest = 64;
  std::vector<std::string> found;
  std::set<fs::path> read; // by their real paths, so that no link leads in circles
  std::vector<std::pair<std::string, int>> left = {{folder, 1}};
  while (!left.empty()) {
    const auto [path, depth] = left.back();
    left.pop_back();
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error)
      throw DataError(text("cannot list ", path, ": ", error.message()));
    if (!read.insert(real).second)
      throw DataError(text(path, " is ", real.string(), " by a link, whose images are read already: remove the link"));
    if (depth > deepest)
      throw DataError(text(path, ": folders lie in one another ", deepest, " levels deep, which are too many"));
    found.push_back(path);
    for (const std::string &name : namesIn(path))
      if (const std::string inner = joinPath(path, name); fs::is_directory(inner, error)) {
        checkInside(inner, root);
        left.push_back({inner, depth + 1});
      }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The first `most` bytes of a file.
static std::vector<uint8_t> readBeginning(const std::string &path, uint64_t most) {
  constexpr uint64_t mostBytes = uint64_t{1} << 28;
  const InputFile file(path);
  if (file.size() > mostBytes)
    throw DataError(text(path, ": ", file.size(), " bytes, an image has at most ", mostBytes));
  std::vector<uint8_t> bytes(std::min(most, file.size()));
  file.readAt(0, bytes.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> readImageFile(const std::string &path) { return readBeginning(path, UINT64_MAX); }

ImageSize sizeOfImageFile(const std::string &path) {
  constexpr uint64_t usual = 1 << 16; // before which most files say it
  const std::vector<uint8_t> beginning = readBeginning(path, usual);
  try {
    return imageSizeOf(beginning, path);
  } catch (const DataError &) {
    if (beginning.size() < usual)
      throw;
  }
  return imageSizeOf(readImageFile(path), path);
}

void CountedPaths::note(const std::string &path) {
  ++noted;
  if (first.size() < shownNames)
    first.push_back(path);
}

std::string CountedPaths::names() const { return someOf(first, static_cast<size_t>(noted)); }

std::string CountedPaths::otherText() const {
  return text(noted, noted == 1 ? " image is" : " images are", " neither JPEG nor PNG: ", names(),
              "; convert them, as by mogrify -format png");
}

} // namespace sluice
