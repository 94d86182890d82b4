// SPDX-License-Identifier: Apache-2.0
// Streams, events and the session that owns the arenas. Everything enqueued on one stream runs in order; streams run beside each other
// and are ordered by events alone. Host: a stream is a thread with a queue. Cuda: a stream is a cudaStream_t.
#pragma once

#include "runtime/Tensor.h"

#include <functional>
#include <memory>

namespace sluice {

class Session;

/// Index into the session's events. A wait waits for the latest record of that event which was enqueued before the wait was.
struct Event {
  int id = -1;
};

class Stream {
public:
  Stream(Session &session, const char *name);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  /// Enqueue; returns at once.
  void record(Event event);
  void wait(Event event);
  /// Blocks the caller until all that was enqueued has run. Rethrows the first exception that a kernel raised.
  void synchronize();

  /// For kernels of the host runtime: enqueues `work`. `node` and `op` name it in traces and profiles and must outlive the program.
  void launch(const char *node, const char *op, std::function<void()> work);

  /// Address of a tensor in its arena.
  void *address(const Tensor &tensor) const;
  template <typename T> T *data(const Tensor &tensor) const { return static_cast<T *>(address(tensor)); }

  Session &session;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Hyperparameters and counters that a step reads; on cuda they live in device memory so that a captured graph sees their changes.
struct StepState {
  float learningRate = 0, momentum = 0, weightDecay = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  uint64_t seed = 0;
  int64_t step = 0; ///< 1 in the first step
};

/// Both arenas, the streams and the events. Allocated once, with the exact sizes of the plan; nothing allocates during a step.
class Session {
public:
  /// Throws MemoryNotAvailable (exit status 3) naming both numbers when either arena cannot be had.
  Session(size_t deviceBytes, size_t hostBytes, int eventCount);
  ~Session();

  /// The slot of the current batch: inputs have two device slots that alternate from step to step.
  Tensor batch(const Tensor (&slots)[2]) const { return slots[batchParity]; }
  Tensor nextBatch(const Tensor (&slots)[2]) const { return slots[1 - batchParity]; }

  /// Says that nothing reads these bytes any more. In poison mode (SLUICE_POISON=1) fills them with NaN on the compute stream.
  void release(const Tensor &tensor);

  void synchronize();

  struct Impl;
  std::unique_ptr<Impl> impl;

  Stream compute, toHost, toDevice;
  StepState state;
  int batchParity = 0;
};

/// Enqueue a copy between the arenas on `stream`. Both tensors have the same byte size.
void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, const char *node);
void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, const char *node);

} // namespace sluice
