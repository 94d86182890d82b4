// SPDX-License-Identifier: Apache-2.0
// Blocks as sets of coroutines, streams as lists of calls.
#include "cuda_runtime.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <ucontext.h>
#include <vector>

struct EmulatedGraph {
  std::vector<std::function<void()>> calls;
  std::vector<cudaEvent_t> external; ///< that a launch records
  size_t others = 0;                 ///< of the calls: copies, fills and events, no kernels
  std::set<int> priorities = {};     ///< of the streams that were captured
};
struct EmulatedStream {
  int priority = 0;
  bool capturing = false;
  uint64_t last = 0; ///< number of its last call that was put off
  int replaysAwaited = 0;
};
struct EmulatedEvent {
  int capture = 0;   ///< number of the capture it was recorded in, 0 outside
  int replays = 0;   ///< times that a graph recorded it
  uint64_t last = 0; ///< number of the call that records it
  std::chrono::steady_clock::time_point time;
};

namespace emulator {

dim3 threadIndex, blockIndex, blockSize, gridSize;
std::chrono::steady_clock::duration spent{0}; ///< on the emulated clock alone
void spend(int seconds) { spent += std::chrono::seconds(seconds); }
bool lastBlockFirst = false;

namespace {

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  dim3 index;
  enum { Ready, AtBarrier, InExchange, Done } state = Ready;
  uint64_t value = 0, received = 0;
  int distance = 0;
};

constexpr size_t stackBytes = 128 << 10;
std::vector<Thread> threads;
ucontext_t scheduler;
size_t running = 0;
const std::function<void()> *work = nullptr;

void enter() {
  (*work)();
  threads[running].state = decltype(Thread::state)(Thread::Done);
  swapcontext(&threads[running].context, &scheduler);
}

void yield() { swapcontext(&threads[running].context, &scheduler); }

constexpr int everyLane = -1; ///< a distance

/// A bit for each lane of a warp, whose threads brought 0 or 1.
uint64_t ballotOf(size_t begin, size_t end) {
  uint64_t bits = 0;
  for (size_t i = begin; i < end; ++i)
    bits |= (threads[i].value & 1) << (i - begin);
  return bits;
}

/// Lets the threads of a warp, or of the whole block, go on when all of them that are not done wait alike.
bool release(size_t begin, size_t end, int state) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    if (threads[i].state == Thread::Done && state == Thread::AtBarrier)
      continue;
    if (threads[i].state != state)
      return false;
    any = true;
  }
  for (size_t i = begin; any && i < end; ++i) {
    if (state == Thread::InExchange)
      threads[i].received = threads[i].distance == everyLane
                                ? ballotOf(begin, end)
                                : threads[begin + ((i - begin) ^ static_cast<size_t>(threads[i].distance))].value;
    if (threads[i].state != Thread::Done)
      threads[i].state = decltype(Thread::state)(Thread::Ready);
  }
  return any;
}

/// A function of its own, because compilers hold getcontext for one that returns twice and locals around it for lost.
void begin(Thread &thread) {
  if (!thread.stack)
    thread.stack.reset(new char[stackBytes]);
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = stackBytes;
  thread.context.uc_link = nullptr;
  thread.state = decltype(Thread::state)(Thread::Ready);
  makecontext(&thread.context, enter, 0);
}

void runBlock(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    threads[i].index =
        dim3(static_cast<unsigned>(i) % blockSize.x, static_cast<unsigned>(i) / blockSize.x % blockSize.y,
             static_cast<unsigned>(i) / blockSize.x / blockSize.y);
    begin(threads[i]);
  }
  for (size_t done = 0; done < count;) {
    bool progress = false;
    done = 0;
    for (running = 0; running < count; ++running) {
      if (threads[running].state == Thread::Ready) {
        threadIndex = threads[running].index;
        swapcontext(&scheduler, &threads[running].context);
        progress = true;
      }
      done += threads[running].state == Thread::Done;
    }
    for (size_t warp = 0; warp < count; warp += 32)
      progress |= release(warp, warp + 32 < count ? warp + 32 : count, Thread::InExchange);
    progress |= release(0, count, Thread::AtBarrier);
    if (!progress && done < count)
      throw std::logic_error("the threads of a block wait for each other at different places");
  }
}

} // namespace

void barrier() {
  threads[running].state = decltype(Thread::state)(Thread::AtBarrier);
  yield();
}

uint64_t exchange(uint64_t value, int distance) {
  Thread &self = threads[running];
  self.value = value, self.distance = distance;
  self.state = decltype(Thread::state)(Thread::InExchange);
  yield();
  return self.received;
}

uint64_t ballot(bool value) { return exchange(value, everyLane); }

void launch(dim3 grid, dim3 block, const std::function<void()> &body) {
  const size_t count = size_t(block.x) * block.y * block.z;
  if (count == 0 || count > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
      grid.x > 2147483647u)
    throw std::invalid_argument("a launch of " + std::to_string(grid.x) + "x" + std::to_string(grid.y) + " blocks of " +
                                std::to_string(count) + " threads");
  if (threads.size() < count)
    threads.resize(count);
  gridSize = grid, blockSize = block, work = &body;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIndex = lastBlockFirst ? dim3(grid.x - 1 - x, grid.y - 1 - y, grid.z - 1 - z) : dim3(x, y, z);
        runBlock(count);
      }
}

namespace {
EmulatedGraph *capture = nullptr;
bool capturing = false;
} // namespace

namespace {

/// Calls that were put off, of all streams, in order. Some thread makes them when it waits.
struct {
  std::recursive_mutex mutex;
  std::deque<std::function<void()>> calls;
  uint64_t made = 0, put = 0;
} later;

uint64_t putOff(std::function<void()> call) {
  std::lock_guard lock(later.mutex);
  later.calls.push_back(std::move(call));
  return ++later.put;
}

void makeUntil(uint64_t last) {
  std::lock_guard lock(later.mutex);
  while (later.made < last && !later.calls.empty()) {
    std::function<void()> call = std::move(later.calls.front());
    later.calls.pop_front();
    ++later.made;
    call();
  }
}
void makeAll() { makeUntil(UINT64_MAX); }

} // namespace

void enqueue(cudaStream_t stream, std::function<void()> call) {
  static const bool eager = emulated("EMULATED_EAGER", 0);
  if (stream && stream->capturing)
    return capture->calls.push_back(std::move(call));
  const uint64_t number = putOff(std::move(call));
  if (eager || !stream)
    makeUntil(number);
  else
    stream->last = number;
}

} // namespace emulator

static int captureNumber = 0;

static bool lost = false;
cudaError_t cudaPeekAtLastError() { return lost ? cudaErrorLaunchFailure : cudaSuccess; }
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure" : "error";
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  if (!lost)
    memcpy(to, from, bytes);
  return cudaPeekAtLastError();
}
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned) {
  return emulated("EMULATED_LOCKABLE", 1) ? cudaMalloc(address, bytes) : cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  *address = bytes > (size_t(1) << 32) ? nullptr : aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *total = size_t(1) << 32;
  *free = static_cast<size_t>(emulated("EMULATED_FREE", 2147483647));
  return cudaSuccess;
}
cudaError_t cudaFree(void *address) { return emulator::makeAll(), free(address), cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return emulator::makeAll(), cudaPeekAtLastError(); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emulator::makeUntil(stream ? stream->last : 0);
  return cudaPeekAtLastError();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  emulator::makeUntil(event->last);
  return cudaPeekAtLastError();
}
static void countCopy(cudaStream_t stream) {
  if (stream && stream->capturing)
    ++emulator::capture->others;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  countCopy(stream);
  emulator::enqueue(stream, [=] { memset(to, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  countCopy(stream);
  emulator::enqueue(stream, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data) {
  countCopy(stream);
  emulator::enqueue(stream, [=] { emulator::callHost(call, data); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int priority) {
  return *stream = new EmulatedStream{priority}, cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int) {
  emulator::capture = new EmulatedGraph;
  emulator::capture->priorities = {stream->priority};
  ++captureNumber;
  stream->capturing = emulator::capturing = true;
  return cudaSuccess;
}
static std::vector<cudaStream_t> forked;
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  stream->capturing = emulator::capturing = false;
  for (cudaStream_t other : forked)
    other->capturing = false;
  forked.clear();
  *graph = emulator::capture;
  return cudaSuccess;
}
static bool prioritiesLost = false;
bool emulator::graphsLostPriorities() { return prioritiesLost; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
  prioritiesLost |= graph->priorities.size() > 1 && !(flags & cudaGraphInstantiateFlagUseNodePriority);
  if (emulated("EMULATED_LAUNCHES", 0))
    fprintf(stderr, "%zu launches\n", graph->calls.size() - graph->others);
  return *exec = graph, cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  static int launches = 0;
  if (lost)
    return cudaPeekAtLastError();
  for (cudaEvent_t event : exec->external)
    ++event->replays;
  emulator::enqueue(stream, [exec, isLost = ++launches == emulated("EMULATED_LOST", 0)] {
    for (size_t i = 0; !lost && i < exec->calls.size() / (isLost ? 2 : 1); ++i)
      exec->calls[i]();
    lost |= isLost;
  });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) { return *event = new EmulatedEvent, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->capture = stream->capturing ? captureNumber : 0;
  if (stream->capturing)
    return cudaSuccess;
  emulator::enqueue(stream, [event] { event->time = std::chrono::steady_clock::now() + emulator::spent; });
  event->last = stream->last;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal || !stream->capturing)
    return cudaEventRecord(event, stream);
  emulator::capture->external.push_back(event);
  return cudaSuccess;
}
/// Waiting for an event of a capture joins it; waiting inside one for an event of the outside is CUDA's error.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream->capturing && event->capture != captureNumber)
    throw std::logic_error("a captured stream waits for an event that the capture did not record");
  if (event->capture && !emulator::capturing)
    throw std::logic_error("a stream waits for an event that was recorded in a capture");
  if (event->capture && !stream->capturing) {
    stream->capturing = true;
    emulator::capture->priorities.insert(stream->priority);
    forked.push_back(stream);
  }
  if (!stream->capturing)
    stream->replaysAwaited = event->replays;
  return cudaSuccess;
}
int emulator::replaysAwaited(cudaStream_t stream) { return stream->replaysAwaited; }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
