// SPDX-License-Identifier: Apache-2.0
// The kinds of notes of this program, in the order in which its kernels came to have them.
#include "runtime/cuda/Note.h"

#include "runtime/cuda/Device.h"

#include <stdexcept>
#include <vector>

namespace sluice {

namespace {

struct Kind {
  const void *symbol;
  void (*raise)(const unsigned long long *words);
  void *address = nullptr; ///< in device memory

  void *place() { // kernels are described before there is a device
    if (!address)
      checkCuda(cudaGetSymbolAddress(&address, symbol), "cannot find what kernels noted");
    return address;
  }
};
constexpr size_t bytes = noteWords * sizeof(unsigned long long);

std::vector<Kind> &kinds() {
  static std::vector<Kind> list;
  return list;
}

} // namespace

void watchNotes(const void *symbol, void (*raise)(const unsigned long long *words)) {
  for (const Kind &kind : kinds())
    if (kind.symbol == symbol)
      return;
  if (kinds().size() == mostNotes)
    throw std::logic_error("more kinds of notes than there is memory for");
  kinds().push_back({symbol, raise});
}

static void clear(Kind &kind) { checkCuda(cudaMemset(kind.place(), 0, bytes), "cannot clear what kernels noted"); }

static void raiseNote(Kind &kind, const unsigned long long *words) {
  if (words[0] == 0)
    return;
  clear(kind);
  kind.raise(words);
}

void clearNotes() {
  for (Kind &kind : kinds())
    clear(kind);
}

void checkNotes() {
  unsigned long long words[noteWords];
  for (Kind &kind : kinds()) {
    checkCuda(cudaMemcpy(words, kind.place(), bytes, cudaMemcpyDeviceToHost), "cannot read what kernels noted");
    raiseNote(kind, words);
  }
}

size_t copyNotes(cudaStream_t stream, unsigned long long *to) {
  for (Kind &kind : kinds()) {
    checkCuda(cudaMemcpyAsync(to, kind.place(), bytes, cudaMemcpyDeviceToHost, stream),
              "cannot read what kernels noted");
    to += noteWords;
  }
  return kinds().size();
}

void raiseNotes(const unsigned long long *copied, size_t count) {
  for (size_t i = 0; i < count; ++i)
    raiseNote(kinds()[i], copied + i * noteWords);
}

} // namespace sluice
