// SPDX-License-Identifier: Apache-2.0
// See StorageFile.h. A write past the end of a file that was cut short would make it as long as before, with zeros
// where its content was: so its size is looked at before every copy.
#include "runtime/host/StorageFile.h"

#include "runtime/Errors.h"
#include "runtime/host/StreamState.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {

StorageFile::StorageFile(const char *path, size_t bytes, const Faults &faults)
    : path(path), bytes(bytes), descriptor(reserveFile("storage", path, bytes)), form(new char[pieceBytes]) {
  if (faults.poison) {
    const std::string poison(std::min<size_t>(bytes, size_t(1) << 20), '\xff');
    for (size_t at = 0; at < bytes; at += poison.size())
      write(poison.data(), at, std::min(poison.size(), bytes - at));
  }
  // Whether the cut fails does not matter: the test that asked for it expects its consequences.
  if (faults.truncate && ftruncate(descriptor, 0) != 0)
    perror("SLUICE_FAULT");
}

StorageFile::~StorageFile() { close(descriptor); }

void StorageFile::requireWhole() const {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || static_cast<size_t>(status.st_size) >= bytes)
    return;
  throw MemoryNotAvailable(
      text("the file of --offload-to lost some of its bytes: it was cut short or its disk failed; '", path, "' has ",
           status.st_size, " of ", bytes));
}

void StorageFile::fail(const char *what, size_t offset, size_t count, int error) const {
  throw MemoryNotAvailable(text("cannot ", what, " ", count, " bytes at ", offset, " of the file of --offload-to, '",
                                path, "': ", error ? strerror(error) : "it ends before"));
}

void StorageFile::write(const char *from, size_t offset, size_t count) const {
  requireWhole();
  while (count > 0) {
    const ssize_t written = pwrite(descriptor, from, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      fail("write", offset, count, written < 0 ? errno : ENOSPC);
    from += written, offset += static_cast<size_t>(written), count -= static_cast<size_t>(written);
  }
}

void StorageFile::read(char *to, size_t offset, size_t count) const {
  requireWhole();
  while (count > 0) {
    const ssize_t got = pread(descriptor, to, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      fail("read", offset, count, got < 0 ? errno : 0);
    to += got, offset += static_cast<size_t>(got), count -= static_cast<size_t>(got);
  }
}

/// The session's file, for a copy of a tensor in it.
static const StorageFile &fileFor(Stream &stream, const Tensor &slot, const Tensor &other, const Node &node) {
  if (slot.space != Space::Storage || slot.bytes() != other.bytes())
    throw std::invalid_argument(
        text("copy for '", node.name, "' between ", slot.bytes(), " bytes of storage and ", other.bytes(), " bytes"));
  return stream.session.impl->fileOf(slot);
}

const StorageFile &Session::Impl::fileOf(const Tensor &slot) {
  if (!storage)
    throw UsageError("this program keeps tensors in a file: --offload-to FILE names it");
  touch(slot, storage->size());
  return *storage;
}

void copyToStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  const StorageFile &file = fileFor(stream, to, from, node);
  const char *source = stream.data<char>(from);
  stream.launch(
      node.as(OpRole::Offload), "copy to storage",
      [&file, source, offset = to.offset, bytes = to.bytes()] { file.write(source, offset, bytes); }, to.bytes());
}

void copyFromStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  const StorageFile &file = fileFor(stream, from, to, node);
  char *target = stream.data<char>(to);
  stream.launch(
      node.as(OpRole::Prefetch), "copy from storage",
      [&file, target, offset = from.offset, bytes = from.bytes()] { file.read(target, offset, bytes); }, from.bytes());
}

} // namespace sluice
