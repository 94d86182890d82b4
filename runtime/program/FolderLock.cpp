// SPDX-License-Identifier: Apache-2.0
// flock(), which holds across machines where a shared file system does. Where it has no locks at all the run goes on:
// files written by two programs are still whole, for each writes aside under a name of its own.

#include "runtime/program/FolderLock.h"

#include "runtime/files/File.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

/// What the holder wrote into its file.
static std::string holderOf(int file) {
  char words[300];
  const ssize_t length = pread(file, words, sizeof words, 0);
  const std::string said(words, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t end = said.find('\n');
  return end == std::string::npos ? "another program" : said.substr(0, end);
}

FolderLock::FolderLock(const std::string &folder) : name(joinPath(folder, "checkpoint.lock")) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw DataError(text("cannot create checkpoint folder ", folder, ": ", error.message()));
  while (!take(folder))
    ;
  say();
}

/// False when the holder removed the file after this program had opened it.
bool FolderLock::take(const std::string &folder) {
  // A file of this name that is no lock, a link say, is left alone.
  descriptor = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor < 0)
    throw systemError("write", name);
  auto giveUp = [&](const std::string &why) {
    close(descriptor);
    return DataError(why);
  };
  struct stat mine, there;
  if (fstat(descriptor, &mine) != 0 || !S_ISREG(mine.st_mode))
    throw giveUp(text("cannot write ", name, ": exists and is not a regular file"));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw giveUp(text(holderOf(descriptor), " writes its checkpoints to ", folder,
                      "; wait for its end, end it, or give another folder to --checkpoint"));
  if (stat(name.c_str(), &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino)
    return true;
  close(descriptor);
  return false;
}

/// Only words for others: a disk without room for them is no reason to stop here.
void FolderLock::say() const {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0)
    host[0] = '\0';
  const std::string words = text("process ", getpid(), " on ", host[0] ? host : "this machine", "\n");
  if (ftruncate(descriptor, 0) == 0 && pwrite(descriptor, words.data(), words.size(), 0) < 0 &&
      ftruncate(descriptor, 0) != 0)
    return;
}

FolderLock::~FolderLock() {
  unlink(name.c_str());
  close(descriptor);
}

} // namespace sluice
