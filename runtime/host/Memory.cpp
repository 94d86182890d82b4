// SPDX-License-Identifier: Apache-2.0
// Arenas of the host runtime. An arena is aligned to 2 MiB and asks for huge pages: kernels stream through it, and page
// walks of 4 KiB pages cost some of the bandwidth.
#include "runtime/host/Memory.h"

#include "runtime/Inside.h"
#include "runtime/Stream.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace sluice {

static constexpr unsigned char canary = 0xc5;
static constexpr size_t hugePage = size_t(2) << 20;

[[noreturn]] static void refuseFile(const char *name, const char *file, size_t bytes, int error) {
  throw MemoryNotAvailable("cannot reserve " + std::to_string(bytes) + " bytes in '" + file + "' for the " + name +
                           " arena: " + strerror(error));
}

int reserveFile(const char *name, const char *file, size_t bytes) {
  const int descriptor = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0)
    throw MemoryNotAvailable("cannot open '" + std::string(file) + "' for the " + name + " arena: " + strerror(errno));
  int full = EINTR;
  while (full == EINTR)
    full = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  unlink(file);
  if (full == 0)
    return descriptor;
  close(descriptor);
  refuseFile(name, file, bytes, full);
}

/// A mapping of a file that vanishes with the process. The descriptor stays open.
static char *mapFile(const char *name, const char *file, size_t bytes, int &descriptor) {
  descriptor = reserveFile(name, file, bytes);
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address != MAP_FAILED)
    return static_cast<char *>(address);
  const int error = errno;
  close(descriptor);
  refuseFile(name, file, bytes, error);
}

Arena::Arena(const char *name, size_t bytes, const char *file, const Faults &faults) : name(name), bytes(bytes) {
  mapped = bytes + 2 * guard + hugePage;
  int descriptor = -1;
  if (file) {
    mapping = mapFile(name, file, mapped, descriptor);
    if (!isInsideLibrary())
      stopOnLostPages(mapping, mapped);
  } else {
    void *address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      throw MemoryNotAvailable("cannot map " + std::to_string(bytes) + " bytes for the " + name +
                               " arena: " + strerror(errno));
    mapping = static_cast<char *>(address);
    if (bytes >= hugePage)
      madvise(mapping, mapped, MADV_HUGEPAGE);
  }
  const size_t start = reinterpret_cast<size_t>(mapping) + guard;
  data = reinterpret_cast<char *>((start + hugePage - 1) / hugePage * hugePage);
  if (faults.poison)
    memset(data, 0xff, bytes);
  memset(data - guard, canary, guard);
  memset(data + bytes, canary, guard);
  // Whether the cut fails does not matter: the test that asked for it expects its consequences.
  if (file && faults.truncate && ftruncate(descriptor, 0) != 0)
    perror("SLUICE_FAULT");
  if (file)
    close(descriptor);
}

Arena::~Arena() { munmap(mapping, mapped); }

void Arena::checkGuards() const {
  for (size_t i = 0; i < guard; ++i) {
    if (static_cast<unsigned char>(data[bytes + i]) != canary)
      throw std::runtime_error("something wrote " + std::to_string(i + 1) + " bytes past the end of the " + name +
                               " arena of " + std::to_string(bytes) + " bytes");
    if (static_cast<unsigned char>(data[-1 - static_cast<ptrdiff_t>(i)]) != canary)
      throw std::runtime_error("something wrote " + std::to_string(i + 1) + " bytes before the " + name + " arena of " +
                               std::to_string(bytes) + " bytes");
  }
}

} // namespace sluice
