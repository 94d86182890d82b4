// SPDX-License-Identifier: Apache-2.0
// Rows that a thread has asked memory for and not yet computed with, in shared memory instead of registers: as many
// bytes are on their way as there is room for, and go on coming while a thread computes. A thread reads what it asked
// for itself, so that no barrier is needed. Devices before compute capability 8.0 copy at once.
#pragma once

#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Held.h"

#include <cuda_pipeline.h>

namespace sluice::detail {

/// Of `Images` tensors, 16 bytes of each a row and thread. A block has one queue; four of them fit into a
/// multiprocessor of 164 KiB.
template <int Images, int Together> struct RowQueue {
  static constexpr int rows = Images == 3 ? 3 : 8 / Images; ///< asked for at most
  static constexpr int batches = rows / Together;           ///< that are asked for and taken as one
  static_assert(Images <= 4 && rows % Together == 0);
  using Slots = uint4[rows][Images][Cut::threads];

  __device__ explicit RowQueue(Slots &slots) : slots(slots) {}

  /// Asks for row u of the batch that comes last, from 16 bytes that begin at a multiple of 16.
  __device__ void ask(int u, int image, const void *from) {
    __pipeline_memcpy_async(&slots[batch * Together + u][image][threadIdx.x], from, 16);
  }
  /// Ends the batch that was asked for; the next one to be asked for takes the place of the oldest.
  __device__ void asked() {
    __pipeline_commit();
    batch = batch + 1 == batches ? 0 : batch + 1;
  }
  /// Waits for the oldest batch, whose place the next one is to take.
  __device__ void wait() const {
    __pipeline_wait_prior(batches - 1);
    asm volatile("" ::: "memory"); // what is read stays behind
  }
  __device__ const void *row(int u, int image) const { return &slots[batch * Together + u][image][threadIdx.x]; }

private:
  Slots &slots;
  int batch = 0;
};

} // namespace sluice::detail
