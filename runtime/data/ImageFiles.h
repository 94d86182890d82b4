// SPDX-License-Identifier: Apache-2.0
// Files of images in folders: what a folder lists, which of it is read, and what is said of the rest.
#pragma once

#include "runtime/data/Image.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// Names in a folder, sorted by their bytes, hidden ones left out. Throws DataError for one that a terminal cannot
/// show.
std::vector<std::string> namesIn(const std::string &folder);

/// A folder and all folders in it, however deep, sorted by the bytes of their paths, as torchvision's ImageFolder reads
/// them; hidden ones left out. Links to folders are followed as far as `root`. Throws DataError for a link out of
/// it or to a folder that is read already, and for folders of more than 64 levels.
std::vector<std::string> foldersIn(const std::string &folder, const std::string &root);

/// .jpg, .jpeg or .png, in upper or lower case.
bool isImageName(const std::string &name);
bool isPngName(const std::string &name);
/// An image of a format that is not read, which would be missed.
bool isOtherImageName(const std::string &name);

/// A data set may hold links to what it holds, not to what else this machine has: throws DataError for one that leads
/// out of `root`.
void checkInside(const std::string &path, const std::string &root);

/// All bytes of a file. Throws DataError for one of more than 256 MiB.
std::vector<uint8_t> readImageFile(const std::string &path);

/// Of an image, of whose file only the beginning is read where that says it. Throws DataError as decodeImage().
ImageSize sizeOfImageFile(const std::string &path);

/// Of many paths the first, and how many there are.
class CountedPaths {
public:
  void note(const std::string &path);
  int64_t count() const { return noted; }
  /// "'a', 'b' and 12 more"
  std::string names() const;
  /// Of images that are not read: how many, which, and what to do.
  std::string otherText() const;

private:
  std::vector<std::string> first;
  int64_t noted = 0;
};

} // namespace sluice
