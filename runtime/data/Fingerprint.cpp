// SPDX-License-Identifier: Apache-2.0
// Looks at little of large data sets: who changes single bytes in the middle of gigabytes is not found out.

#include "runtime/data/Fingerprint.h"

#include "runtime/Errors.h"
#include "runtime/files/Crc32c.h"
#include "runtime/files/File.h"

#include <algorithm>
#include <filesystem>

namespace sluice {

static constexpr uint64_t pages = 256, pageBytes = 4096;

/// What all paths begin with.
static size_t commonPart(const std::vector<std::string> &paths) {
  size_t common = paths[0].size();
  for (const std::string &path : paths) {
    const size_t shorter = std::min(common, path.size());
    common = static_cast<size_t>(
        std::mismatch(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(shorter), paths[0].begin()).first -
        path.begin());
  }
  return common;
}

/// Adds up to `count` pages: the first, the last and those between at equal distances.
static void addPages(const std::string &path, uint64_t count, Crc32c &sum) {
  const InputFile file(path);
  const uint64_t size = file.size(), last = size > pageBytes ? size - pageBytes : 0;
  std::vector<char> page(pageBytes);
  const uint64_t needed = std::min(count, (size + pageBytes - 1) / pageBytes);
  for (uint64_t i = 0; i < needed; ++i) {
    const uint64_t at = needed > 1 ? last / (needed - 1) * i + last % (needed - 1) * i / (needed - 1) : 0;
    const size_t bytes = std::min(pageBytes, size - at);
    file.readAt(at, page.data(), bytes);
    sum.add(page.data(), bytes);
  }
  file.dropPages();
}

std::string fingerprintOf(const std::vector<std::string> &paths) {
  if (paths.empty())
    return "";
  const size_t common = commonPart(paths);
  uint64_t total = 0;
  Crc32c sum;
  for (const std::string &path : paths) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error)
      throw DataError(text("cannot read ", path, ": ", error.message()));
    total += size;
    const std::string facts = text(path.substr(common), '\0', size, '\0');
    sum.add(facts.data(), facts.size());
    if (paths.size() <= pages)
      addPages(path, pages / paths.size(), sum);
  }
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", sum.value());
  return text(paths.size(), paths.size() == 1 ? " file of " : " files of ", total, " bytes with checksum ", digits);
}

} // namespace sluice
