// SPDX-License-Identifier: Apache-2.0
// What a session of the host runtime and its streams hold: arenas, events, the first error, and a thread with a ring of
// tasks for each stream. Events count generations: a record enqueued is generation g, a wait remembers the g it saw
// when it was enqueued, and it ends once the stream that records has come that far.
#pragma once

#include "runtime/Stream.h"

#include "runtime/FreeMemory.h"
#include "runtime/Watchdog.h"
#include "runtime/host/Memory.h"
#include "runtime/host/PackedPool.h"
#include "runtime/host/StorageFile.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace sluice {

struct Session::Impl {
  using Clock = std::chrono::steady_clock;
  struct EventState {
    uint64_t recorded = 0, reached = 0;
  };

  Impl(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile, ArenaSizes others)
      : faults(Faults::fromEnvironment()),
        device((requireFreeMemory(deviceBytes + (fileOfHost(hostFile, others) ? 0 : hostBytes)), "device"), deviceBytes,
               nullptr, faults),
        host("host", hostBytes, fileOfHost(hostFile, others), faults), events(static_cast<size_t>(eventCount)) {
    if (others.storage && hostFile)
      storage.emplace(hostFile, others.storage, faults);
    if (others.pool == 0)
      return;
    if (others.pool > hostBytes)
      throw std::invalid_argument("a pool of " + std::to_string(others.pool) + " bytes in a host arena of " +
                                  std::to_string(hostBytes));
    if (hostFile)
      spill.emplace("spill", others.spill, hostFile, faults);
    pool.emplace(host.base() + hostBytes - others.pool, others.pool, spill ? spill->base() : nullptr);
  }

  /// The host arena lies in the file where nothing else needs it.
  static const char *fileOfHost(const char *hostFile, const ArenaSizes &others) {
    return others.pool || others.storage ? nullptr : hostFile;
  }

  /// A tensor of an arena of so many bytes is asked for: the peak reaches its end.
  void touch(const Tensor &tensor, size_t bytes) {
    const size_t end = tensor.offset + tensor.bytes();
    if (end > bytes)
      throw std::out_of_range("a tensor at [" + std::to_string(tensor.offset) + ", " + std::to_string(end) +
                              ") of an arena of " + std::to_string(bytes) + " bytes");
    std::atomic<size_t> &peak = peaks[indexOf(tensor.space)];
    for (size_t seen = peak; seen < end && !peak.compare_exchange_weak(seen, end);)
      ;
  }

  EventState &event(Event event) {
    if (event.id < 0 || event.id >= static_cast<int>(events.size()))
      throw std::invalid_argument("event " + std::to_string(event.id) + " of a session with " +
                                  std::to_string(events.size()) + " events");
    return events[static_cast<size_t>(event.id)];
  }

  void fail(std::exception_ptr exception) {
    std::lock_guard<std::mutex> lock(errorMutex);
    if (!error)
      error = exception;
    failed = true;
  }

  /// No stream is running.
  void forgetFailure() {
    std::lock_guard<std::mutex> lock(errorMutex);
    error = nullptr;
    failed = false;
  }

  void rethrow() {
    std::lock_guard<std::mutex> lock(errorMutex);
    if (error)
      std::rethrow_exception(error);
  }

  /// The file of storage, for a tensor there; throws UsageError where the session has none.
  const StorageFile &fileOf(const Tensor &slot);

  const Faults faults;
  Arena device, host;
  std::optional<Arena> spill;
  std::optional<StorageFile> storage;
  std::optional<PackedPool> pool;
  std::mutex eventMutex;
  std::condition_variable eventReached;
  std::vector<EventState> events;
  std::mutex errorMutex;
  std::exception_ptr error;
  std::atomic<bool> failed{false}, recording{false}, countingZeros{false};
  std::atomic<size_t> peaks[arenaCount] = {}; ///< by Space
  std::atomic<size_t> rawBytes{0}, packedBytes{0};
  Clock::time_point begin = Clock::now();
  double now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  std::vector<Tensor> left; ///< scalars of the last step
  double patience = 0;      ///< seconds; 0: nobody watches
  OnStuck onStuck;
  std::vector<Stream::Impl *> watched;
  /// `late`: seconds for which nobody could look.
  void watch(double late);
};

struct Stream::Impl {
  struct Task {
    Node node;
    const char *op = nullptr; ///< none: a record or a wait, which runs even after a failure
    std::function<void()> work;
    size_t bytes = 0;
  };

  Impl(Session::Impl &session, StreamId id) : session(session), id(id), ring(capacity), thread([this] { loop(); }) {
    session.watched.push_back(this);
  }

  ~Impl() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    filled.notify_all();
    thread.join();
  }

  /// A full ring blocks the caller: it is then far enough ahead.
  void push(Task task);

  void loop();

  void execute(Task &task);

  /// What runs now, for the watchdog.
  void note(const Task &task, double start) {
    std::lock_guard<std::mutex> lock(runningMutex);
    running = {task.node, task.op, start};
    reported = session.patience;
  }
  void watch(double late);

  /// Waits until so many tasks have finished, and looks after all streams meanwhile.
  void await(std::unique_lock<std::mutex> &lock, uint64_t target);

  void drain() {
    std::unique_lock<std::mutex> lock(mutex);
    const uint64_t target = pushed;
    await(lock, target);
  }

  static constexpr uint64_t capacity = 4096, nobody = ~uint64_t{0};
  Session::Impl &session;
  const StreamId id;
  std::mutex mutex, recordMutex, runningMutex;
  std::condition_variable filled, drained;
  std::vector<Task> ring;
  uint64_t pushed = 0, finished = 0;
  uint64_t wanted = nobody; ///< finished tasks that somebody waits for; the fewest
  bool stopping = false, idle = false;
  std::vector<OpRecord> records;
  struct {
    Node node;
    const char *op = nullptr;
    double start = 0; ///< seconds since the session began
  } running;
  double reported = 0; ///< how long a task may run before it is named
  std::thread thread;  // last: it starts when all the rest exists
};

} // namespace sluice
