// SPDX-License-Identifier: Apache-2.0
// One rename puts the new folder where the former one was, and that one where the new one was filled, to be removed.

#include "runtime/files/OutputFolder.h"

#include "runtime/files/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace sluice {

/// Without slashes at its end, and with links followed where it exists.
static std::string finalName(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

OutputFolder::OutputFolder(const std::string &path, const FileMark &mark) : name(finalName(path)), mark(mark) {
  checkFormer();
  const std::string folder = parentFolder(name);
  removeStalePartials(folder);
  for (int number = 0; holder < 0; ++number) {
    partial = partialName(folder, number, name);
    if (mkdir(partial.c_str(), 0777) != 0) {
      if (errno == EEXIST)
        continue;
      throw systemError("write", name);
    }
    holder = open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (holder < 0)
      throw systemError("write", name);
    if (lockPartial(holder))
      return;
    close(holder);
    holder = -1;
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!partial.empty())
    fs::remove_all(partial, ignored);
  if (holder >= 0)
    close(holder);
}

/// Of a regular file.
static bool hasMark(const std::string &path, const FileMark &mark) {
  const InputFile file(path);
  std::string begin(mark.bytes.size(), '\0');
  if (file.size() < mark.offset + begin.size())
    return false;
  file.readAt(mark.offset, begin.data(), begin.size());
  return begin == mark.bytes;
}

void OutputFolder::checkFormer() const {
  struct stat own, parent, here;
  if (stat(name.c_str(), &own) != 0)
    return; // there is none
  const auto refuse = [&](const std::string &why) {
    throw DataError(text("cannot write the folder ", name, ": ", why));
  };
  if (!S_ISDIR(own.st_mode))
    refuse("exists and is no folder");
  if (stat(parentFolder(name).c_str(), &parent) == 0 && parent.st_dev != own.st_dev)
    refuse("a file system is mounted there, which cannot be replaced; name a folder in it");
  if (stat(".", &here) == 0 && here.st_dev == own.st_dev && here.st_ino == own.st_ino)
    refuse("the run was started in it; name a folder in it");
  std::error_code error;
  for (fs::recursive_directory_iterator entry(name, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code ignored;
    const bool folder = entry->is_directory(ignored) && !entry->is_symlink(ignored);
    const bool file = entry->is_regular_file(ignored) && !entry->is_symlink(ignored);
    if (!folder && !(file && hasMark(path, mark)))
      refuse(text("it holds ", path, ", which was not written there by this flag, and would be replaced as a whole; ",
                  "name another folder"));
  }
  if (error)
    refuse(error.message());
}

/// Whether a relative name has only parts that lead further in.
static bool leadsIn(const std::string &name) {
  if (name.empty() || name.find('\0') != std::string::npos)
    return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..")
      return false;
    at = end + 1;
  }
  return true;
}

void OutputFolder::write(const std::string &file, const std::string &bytes) {
  if (!leadsIn(file))
    throw DataError(text("cannot write '", file, "' into ", name, ": the name leads out of it"));
  const std::string path = joinPath(partial, file), shown = joinPath(name, file);
  std::error_code error;
  fs::create_directories(parentFolder(path), error);
  if (error)
    throw DataError(text("cannot write ", shown, ": ", error.message()));
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (out < 0)
    throw systemError("write", shown);
  writeAndClose(out, bytes, shown);
}

void OutputFolder::commit() {
  if (syncfs(holder) != 0)
    throw systemError("write", name);
  checkFormer(); // the run may have taken days
  // An empty folder of that name is replaced by the first, one with files by the second.
  if (rename(partial.c_str(), name.c_str()) == 0)
    partial.clear();
  else if ((errno != ENOTEMPTY && errno != EEXIST) ||
           renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) != 0)
    throw systemError("write", name);
  syncFolder(parentFolder(name));
}

} // namespace sluice
