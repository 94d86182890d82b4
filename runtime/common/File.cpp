// SPDX-License-Identifier: Apache-2.0
// POSIX files with every return value checked, short reads and writes and a full disk included.

#include "runtime/common/File.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

static DataError systemError(const char *action, const std::string &path) {
  return DataError(text("cannot ", action, " ", path, ": ", std::strerror(errno)));
}

InputFile::InputFile(const std::string &path) : name(path) {
  // Without O_NONBLOCK a named pipe would block here before its kind is known.
  descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw systemError("open", path);
  struct stat status;
  int failed = fstat(descriptor, &status);
  if (failed || !S_ISREG(status.st_mode)) {
    close(descriptor);
    throw DataError(text("cannot read ", path, ": not a regular file"));
  }
  length = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    close(descriptor);
}

InputFile::InputFile(InputFile &&other) noexcept
    : name(std::move(other.name)), descriptor(other.descriptor), length(other.length) {
  other.descriptor = -1;
}

void InputFile::readAt(uint64_t offset, void *to, size_t bytes) const {
  char *out = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t got = pread(descriptor, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    // The target, not the file, is lost: pages of the host arena whose own file is. Touching them says so.
    if (got < 0 && errno == EFAULT)
      *static_cast<volatile char *>(out) = 0;
    if (got < 0)
      throw systemError("read", name);
    if (got == 0)
      throw DataError(text(name, " ends at byte ", offset, ", ", bytes, " bytes short"));
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

void InputFile::dropPages() const { posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED); }

OutputFile::OutputFile(const std::string &path) : name(path), partial(path + ".partial") {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw DataError(text("cannot write ", path, ": exists and is not a regular file"));
  descriptor = open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0)
    throw systemError("write", path);
}

OutputFile::~OutputFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  unlink(partial.c_str());
}

void OutputFile::write(const void *from, size_t bytes) {
  writeAt(length, from, bytes);
  length += bytes;
}

void OutputFile::writeAt(uint64_t offset, const void *from, size_t bytes) {
  const char *in = static_cast<const char *>(from);
  while (bytes > 0) {
    ssize_t put = pwrite(descriptor, in, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      throw systemError("write", name);
    if (put == 0)
      throw DataError(text("cannot write ", name, ": it takes no more bytes"));
    in += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<size_t>(put);
  }
}

void OutputFile::commit() {
  if (fsync(descriptor) != 0)
    throw systemError("write", name);
  int closing = descriptor;
  descriptor = -1;
  if (close(closing) != 0 || rename(partial.c_str(), name.c_str()) != 0) {
    DataError error = systemError("write", name);
    unlink(partial.c_str());
    throw error;
  }
  // The new name is durable only when the folder is; some file systems cannot sync folders, which is no failure.
  int folder = open(parentFolder(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
}

std::string joinPath(const std::string &folder, const std::string &name) {
  return folder.empty() || folder.back() == '/' ? folder + name : folder + "/" + name;
}

std::string parentFolder(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string besideExecutable(const std::string &name) {
  if (name.empty() || name.find('/') != std::string::npos)
    throw DataError(text("'", name, "' is not the name of a file beside the program"));
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof path)
    throw DataError(text("cannot find the folder of this program, which should hold ", name));
  return joinPath(parentFolder(std::string(path, static_cast<size_t>(length))), name);
}

} // namespace sluice
