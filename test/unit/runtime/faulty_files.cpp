// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that lets one file operation of a program fail. FAULT=CALL:N:KIND names the call, which of
// its occurrences on files below the current folder (the first is 1), and what happens then:
//   an error by name (EIO, ENOSPC, EINTR, ...); pthread_create counts as a call, too
//   half     reads and writes move half of the bytes, at least one
//   zero     reads and writes move none from here on: what is read has ended, what is written finds no room
//   kill     the process gets SIGKILL in front of the call
//   lost     the call succeeds, and the file that was reserved last (the arena of --offload-to) is cut to nothing
// Once that has happened, a file named `fired` lies in the current folder.
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

enum Effect { Normal, Half, Zero, Error };

std::atomic<int> calls{0}, reserved{-1};

template <typename Function> Function *original(const char *name, Function *) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

bool below(const char *path) {
  char folder[PATH_MAX];
  if (path[0] != '/')
    return true;
  return getcwd(folder, sizeof folder) && strncmp(path, folder, strlen(folder)) == 0;
}

bool below(int descriptor) {
  char path[PATH_MAX + 1] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return readlink(link.c_str(), path, PATH_MAX) > 0 && path[0] == '/' && below(path);
}

int numberOf(const std::string &error) {
  const std::pair<const char *, int> known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},
                                                {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"EROFS", EROFS},
                                                {"EDQUOT", EDQUOT}, {"EAGAIN", EAGAIN}, {"EPERM", EPERM}};
  for (auto [name, number] : known)
    if (error == name)
      return number;
  fprintf(stderr, "faulty_files: no error is called '%s'\n", error.c_str());
  abort();
}

/// What this call is to do. Error: errno is set.
template <typename File> Effect effectOn(const char *call, File file) {
  const char *fault = getenv("FAULT");
  const std::string wanted = std::string(call) + ":";
  if (!fault || strncmp(fault, wanted.c_str(), wanted.size()) != 0 || !below(file))
    return Normal;
  char *end = nullptr;
  const long which = strtol(fault + wanted.size(), &end, 10);
  const std::string kind = end + 1;
  const int occurrence = ++calls;
  if (occurrence < which || (occurrence > which && kind != "zero"))
    return Normal;
  syscall(SYS_close, static_cast<int>(syscall(SYS_openat, AT_FDCWD, "fired", O_CREAT | O_WRONLY, 0600)));
  if (kind == "kill")
    raise(SIGKILL);
  if (kind == "half")
    return Half;
  if (kind == "zero")
    return Zero;
  if (kind == "lost") {
    if (ftruncate(reserved, 0) != 0)
      abort();
    return Normal;
  }
  errno = numberOf(kind);
  return Error;
}

/// `move(bytes)` reads or writes that many.
template <typename Move> ssize_t moveBytes(const char *call, int descriptor, size_t bytes, Move move) {
  switch (effectOn(call, descriptor)) {
  case Normal:
    return move(bytes);
  case Half:
    return move(bytes > 1 ? bytes / 2 : bytes);
  case Zero:
    return 0;
  case Error:
    return -1;
  }
  return -1;
}

} // namespace

extern "C" {

ssize_t pread(int descriptor, void *to, size_t bytes, off_t offset) {
  return moveBytes("pread", descriptor, bytes,
                   [=](size_t count) { return original("pread", &pread)(descriptor, to, count, offset); });
}

ssize_t pwrite(int descriptor, const void *from, size_t bytes, off_t offset) {
  return moveBytes("pwrite", descriptor, bytes,
                   [=](size_t count) { return original("pwrite", &pwrite)(descriptor, from, count, offset); });
}

ssize_t write(int descriptor, const void *from, size_t bytes) {
  return moveBytes("write", descriptor, bytes,
                   [=](size_t count) { return original("write", &write)(descriptor, from, count); });
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return effectOn("open", path) == Error ? -1 : original("open", &open)(path, flags, mode);
}

int fsync(int descriptor) {
  return effectOn("fsync", descriptor) == Error ? -1 : original("fsync", &fsync)(descriptor);
}

// Whatever it reports, the descriptor is gone.
int close(int descriptor) {
  const Effect effect = descriptor > 2 ? effectOn("close", descriptor) : Normal;
  const int error = errno, closed = static_cast<int>(syscall(SYS_close, descriptor));
  if (effect == Error)
    errno = error;
  return effect == Error ? -1 : closed;
}

int rename(const char *from, const char *to) {
  return effectOn("rename", to) == Error ? -1 : original("rename", &rename)(from, to);
}

int link(const char *from, const char *to) {
  return effectOn("link", to) == Error ? -1 : original("link", &link)(from, to);
}

// Counted as if it were of a file, so that one library serves.
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument) {
  if (effectOn("pthread_create", ".") == Error)
    return errno;
  return original("pthread_create", &pthread_create)(thread, attributes, work, argument);
}

int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  if (effectOn("posix_fallocate", descriptor) == Error)
    return errno;
  reserved = dup(descriptor);
  return original("posix_fallocate", &posix_fallocate)(descriptor, offset, bytes);
}
}
