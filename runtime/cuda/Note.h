// SPDX-License-Identifier: Apache-2.0
// Failures that kernels note in device memory, because they cannot throw, so that captured steps end with them as
// others do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace sluice {

/// Words of one kind of notes; the first is the node of the first failure, as an address of this process, 0: none.
constexpr size_t noteWords = 5;
/// Kinds of notes that a program may have.
constexpr size_t mostNotes = 5;

/// Has the notes in `symbol`, a __device__ array of noteWords words, looked at from now on. `raise` throws the error
/// that they stand for. Again with the same symbol: nothing.
void watchNotes(const void *symbol, void (*raise)(const unsigned long long *words));

/// Forgets what kernels have noted. No stream may be running.
void clearNotes();

/// Throws when a kernel has noted something since the last call. No stream may be running.
void checkNotes();

/// Enqueues a copy of all notes into `to`, which has mostNotes * noteWords words of locked memory; how many kinds there
/// are now. Then, once it was made, the same for raiseNotes(), which throws as checkNotes() does.
size_t copyNotes(cudaStream_t stream, unsigned long long *to);
void raiseNotes(const unsigned long long *copied, size_t kinds);

/// The name that a note begins with.
inline const char *notedNode(const unsigned long long *words) {
  return reinterpret_cast<const char *>(static_cast<uintptr_t>(words[0]));
}

} // namespace sluice
