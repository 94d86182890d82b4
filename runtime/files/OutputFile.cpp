// SPDX-License-Identifier: Apache-2.0
// Files aside are named .sluice-PID-N.partial. Their writer holds a lock on them, which ends with it however it ends,
// so a file whose lock is free has no writer any more. Where a file system has no locks nothing is removed.

#include "runtime/files/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace sluice {

static constexpr char prefix[] = ".sluice-", suffix[] = ".partial";

static bool isPartialName(const std::string &name) {
  const size_t ends = sizeof prefix - 1 + sizeof suffix - 1;
  return name.size() > ends && name.compare(0, sizeof prefix - 1, prefix) == 0 &&
         name.compare(name.size() - (sizeof suffix - 1), sizeof suffix - 1, suffix) == 0 &&
         name.find_first_not_of("0123456789-", sizeof prefix - 1) == name.size() - (sizeof suffix - 1);
}

/// Removes a file or a folder aside if it is this user's and has no writer.
static void removeIfStale(const std::string &path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return;
  struct stat status;
  std::error_code ignored;
  if (fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) && status.st_uid == geteuid() &&
      flock(file, LOCK_EX | LOCK_NB) == 0)
    std::filesystem::remove_all(path, ignored); // follows no links
  close(file);
}

void removeStalePartials(const std::string &folder) {
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return; // creating the file will say what is wrong
  while (const dirent *entry = readdir(entries))
    if (isPartialName(entry->d_name))
      removeIfStale(joinPath(folder, entry->d_name));
  closedir(entries);
}

bool lockPartial(int descriptor) {
  (void)flock(descriptor, LOCK_EX | LOCK_NB);
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

OutputFile::OutputFile(const std::string &path) : name(path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw DataError(text("cannot write ", path, ": exists and is not a regular file"));
  const std::string folder = parentFolder(path);
  removeStalePartials(folder);
  create(folder);
}

std::string partialName(const std::string &folder, int number, const std::string &name) {
  if (number >= 100000)
    throw DataError(text("cannot write ", name, ": too many files named ", prefix, "*", suffix, " beside it"));
  return joinPath(folder, text(prefix, getpid(), "-", number, suffix));
}

/// O_EXCL: never somebody else's file, nor what a link points to.
void OutputFile::create(const std::string &folder) {
  for (int number = 0;; ++number) {
    partial = partialName(folder, number, name);
    descriptor = open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST)
      continue;
    if (descriptor < 0)
      throw systemError("write", name);
    if (lockPartial(descriptor))
      return;
    close(descriptor);
    descriptor = -1;
  }
}

OutputFile::~OutputFile() {
  if (descriptor < 0)
    return;
  unlink(partial.c_str());
  close(descriptor);
}

void OutputFile::write(const void *from, size_t bytes) {
  writeAt(length, from, bytes);
  length += bytes;
}

void OutputFile::writeAt(uint64_t offset, const void *from, size_t bytes) {
  writeAll(descriptor, offset, from, bytes, name);
}

void writeAll(int descriptor, uint64_t offset, const void *from, size_t bytes, const std::string &name) {
  const char *in = static_cast<const char *>(from);
  while (bytes > 0) {
    const ssize_t put = pwrite(descriptor, in, bytes, static_cast<off_t>(offset));
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

void writeAndClose(int descriptor, const std::string &bytes, const std::string &name) {
  try {
    writeAll(descriptor, 0, bytes.data(), bytes.size(), name);
  } catch (...) {
    close(descriptor);
    throw;
  }
  if (close(descriptor) != 0) // as on file systems of other machines
    throw systemError("write", name);
}

void writeFile(const std::string &path, const std::string &bytes, const std::string &name) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    throw systemError("write", name);
  writeAndClose(descriptor, bytes, name);
}

void syncFolder(const std::string &path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
}

void OutputFile::commit() {
  if (fsync(descriptor) != 0)
    throw systemError("write", name);
  // The lock is held until the file has its name; closing the first descriptor says what the file system kept to
  // itself.
  const int holder = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (holder < 0)
    throw systemError("write", name);
  const int closing = descriptor;
  descriptor = -1;
  if (close(closing) != 0 || rename(partial.c_str(), name.c_str()) != 0) {
    DataError error = systemError("write", name);
    unlink(partial.c_str());
    close(holder);
    throw error;
  }
  close(holder);
  syncFolder(parentFolder(name));
}

void copyAll(const InputFile &from, OutputFile &to) {
  std::vector<char> buffer(size_t{1} << 20);
  for (uint64_t at = 0; at < from.size();) {
    size_t bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), from.size() - at));
    from.readAt(at, buffer.data(), bytes);
    to.write(buffer.data(), bytes);
    at += bytes;
  }
}

bool isSameFile(const std::string &a, const std::string &b) {
  struct stat first, second;
  if (stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0)
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  std::error_code one, other;
  const auto left = std::filesystem::weakly_canonical(std::filesystem::absolute(a, one), one),
             right = std::filesystem::weakly_canonical(std::filesystem::absolute(b, other), other);
  return !one && !other && left == right;
}

} // namespace sluice
