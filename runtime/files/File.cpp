// SPDX-License-Identifier: Apache-2.0
// POSIX files with every return value checked, short reads included.

#include "runtime/files/File.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

DataError systemError(const char *action, const std::string &path) {
  return DataError(text("cannot ", action, " ", path, ": ", std::strerror(errno)));
}

// Without O_NONBLOCK a named pipe would block here before its kind is known.
InputFile::InputFile(const std::string &path)
    : InputFile(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path) {}

InputFile::InputFile(int descriptor, const std::string &path) : name(path), descriptor(descriptor) {
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

void openStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); // takes the lowest number that is free
}

bool endsWith(const std::string &path, const std::string &ending) {
  return path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
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

/// The file that this code was loaded from: the shared library that it is linked into, empty for the executable.
static std::string loadedFrom() {
  struct Search {
    uintptr_t wanted;
    std::string found;
  } search{reinterpret_cast<uintptr_t>(&loadedFrom), ""};
  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto &segment = object->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD && search.wanted - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz)
            return search.found = object->dlpi_name, 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

std::string besideProgram(const std::string &name) {
  if (!name.empty() && name[0] == '/')
    return name;
  if (name.empty() || name.find('/') != std::string::npos)
    throw DataError(text("'", name, "' is not the name of a file beside the program"));
  const std::string library = loadedFrom();
  char path[PATH_MAX];
  if (!library.empty() && realpath(library.c_str(), path))
    return joinPath(parentFolder(path), name);
  const ssize_t length = library.empty() ? readlink("/proc/self/exe", path, sizeof path) : 0;
  if (length <= 0 || static_cast<size_t>(length) >= sizeof path)
    throw DataError(text("cannot find the folder of this program, which should hold ", name));
  return joinPath(parentFolder(std::string(path, static_cast<size_t>(length))), name);
}

} // namespace sluice
