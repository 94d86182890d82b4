// SPDX-License-Identifier: Apache-2.0
// What steps leave for the CPU: scalars and notes, copied out after each step, so that the next one may follow at once
// and overwrite them.
#pragma once

#include "runtime/Stream.h"
#include "runtime/cuda/CudaEvent.h"
#include "runtime/cuda/Note.h"

#include <vector>

namespace sluice {

class StepResults {
public:
  StepResults() = default;
  StepResults(const StepResults &) = delete;
  StepResults &operator=(const StepResults &) = delete;

  /// Enqueues copies of these F32 scalars in device memory, null: 0, and of all notes. Two steps at most wait.
  void leave(cudaStream_t stream, const std::vector<const float *> &scalars);
  /// Waits for the earliest step, throws what it noted, and copies its scalars out.
  void take(float *scalars);
  /// Steps that nobody took.
  int waiting() const { return leaves - takes; }
  /// Of the last one.
  cudaEvent_t end() const { return slots[(leaves + 1) % 2].done.event; }

private:
  static constexpr size_t mostScalars = Session::mostScalars;
  struct Words {
    float scalars[mostScalars];
    unsigned long long notes[mostNotes * noteWords];
  };
  struct Slot {
    Slot();
    ~Slot() { cudaFreeHost(words); }
    CudaEvent done;
    Words *words;                ///< locked
    size_t count = 0, notes = 0; ///< scalars, and kinds of notes
  };

  Slot slots[2]; ///< in turn
  int leaves = 0, takes = 0;
};

} // namespace sluice
