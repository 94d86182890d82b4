// SPDX-License-Identifier: Apache-2.0
// Streams of the host runtime: a thread with a ring of tasks each. Events count generations: a record enqueued is
// generation g, a wait remembers the g it saw when it was enqueued, and it ends once the stream that records has come
// that far.
#include "runtime/Stream.h"

#include "runtime/common/FreeMemory.h"
#include "runtime/common/Watchdog.h"
#include "runtime/host/Memory.h"
#include "runtime/host/PackedPool.h"
#include "runtime/host/Parallel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <pthread.h>
#include <sched.h>

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

struct Task {
  const char *node = nullptr, *op = nullptr; ///< no op: a record or a wait, which runs even after a failure
  std::function<void()> work;
  size_t bytes = 0;
};

} // namespace

struct Session::Impl {
  struct EventState {
    uint64_t recorded = 0, reached = 0;
  };

  Impl(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile, PoolSize size)
      : faults(Faults::fromEnvironment()),
        device((requireFreeMemory(deviceBytes + (hostFile && !size.bytes ? 0 : hostBytes)), "device"), deviceBytes,
               nullptr, faults),
        host("host", hostBytes, size.bytes ? nullptr : hostFile, faults), events(static_cast<size_t>(eventCount)) {
    if (size.bytes == 0)
      return;
    if (size.bytes > hostBytes)
      throw std::invalid_argument("a pool of " + std::to_string(size.bytes) + " bytes in a host arena of " +
                                  std::to_string(hostBytes));
    if (hostFile)
      spill.emplace("spill", size.spill, hostFile, faults);
    pool.emplace(host.base() + hostBytes - size.bytes, size.bytes, spill ? spill->base() : nullptr, size.spill);
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

  void rethrow() {
    std::lock_guard<std::mutex> lock(errorMutex);
    if (error)
      std::rethrow_exception(error);
  }

  const Faults faults;
  Arena device, host;
  std::optional<Arena> spill;
  std::optional<PackedPool> pool;
  std::mutex eventMutex;
  std::condition_variable eventReached;
  std::vector<EventState> events;
  std::mutex errorMutex;
  std::exception_ptr error;
  std::atomic<bool> failed{false}, recording{false};
  std::atomic<size_t> peaks[2] = {}; ///< by Space
  std::atomic<size_t> rawBytes{0}, packedBytes{0};
  Clock::time_point begin = Clock::now();
  double now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  double patience = 0; ///< seconds; 0: nobody watches
  OnStuck onStuck;
  std::vector<Stream::Impl *> watched;
  void watch();
};

/// A copy that wakes up must not take the core of a thread that computes, which would wait for all of a copy shorter
/// than a time slice. Where the system knows no such thing copies are only less hidden.
static void leaveRunningThreadsAlone() {
#ifdef SCHED_BATCH
  const sched_param priority{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &priority);
#endif
}

struct Stream::Impl {
  Impl(Session::Impl &session, const char *name)
      : session(session), name(name), ring(capacity), thread([this] { loop(); }) {
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
  void push(Task task) {
    std::unique_lock<std::mutex> lock(mutex);
    while (pushed - finished >= capacity)
      await(lock, pushed - capacity + 1);
    ring[pushed++ % capacity] = std::move(task);
    if (idle)
      filled.notify_one();
  }

  void loop() {
    if (std::string_view(name) != "compute")
      leaveRunningThreadsAlone();
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      idle = true;
      filled.wait(lock, [&] { return finished < pushed || stopping; });
      idle = false;
      if (finished == pushed)
        return;
      Task task = std::move(ring[finished % capacity]);
      lock.unlock();
      execute(task);
      task = {};
      lock.lock();
      if (++finished < wanted)
        continue; // waking a core that sleeps takes as long as a small kernel
      wanted = nobody;
      drained.notify_all();
    }
  }

  void execute(Task &task) {
    if (session.faults.delaySeed)
      delayTask(*session.faults.delaySeed, name, finished);
    if (task.op && session.failed)
      return;
    adoptThreadCount();
    const double start = session.now();
    note(task, start);
    try {
      task.work();
    } catch (...) {
      session.fail(std::current_exception());
    }
    note({}, 0);
    if (task.op && session.recording) {
      std::lock_guard<std::mutex> lock(recordMutex);
      records.push_back({task.node, task.op, name, start, session.now(), task.bytes});
    }
  }

  /// What runs now, for the watchdog.
  void note(const Task &task, double start) {
    std::lock_guard<std::mutex> lock(runningMutex);
    running = {task.node, task.op, start};
    reported = session.patience;
  }
  void watch() {
    std::unique_lock<std::mutex> lock(runningMutex);
    const auto [node, op, start] = running;
    const double seconds = session.now() - start;
    if (!op || seconds < reported)
      return;
    reported = 2 * seconds;
    lock.unlock();
    session.onStuck(name, node, op, seconds);
  }

  /// Waits until so many tasks have finished, and looks after all streams meanwhile.
  void await(std::unique_lock<std::mutex> &lock, uint64_t target) {
    const std::chrono::duration<double> look(std::min(1.0, session.patience));
    while (finished < target) {
      wanted = std::min(wanted, target);
      if (session.patience <= 0) {
        drained.wait(lock);
      } else if (drained.wait_for(lock, look) == std::cv_status::timeout) {
        lock.unlock();
        session.watch();
        lock.lock();
      }
    }
  }

  void drain() {
    std::unique_lock<std::mutex> lock(mutex);
    const uint64_t target = pushed;
    await(lock, target);
  }

  static constexpr uint64_t capacity = 4096, nobody = ~uint64_t{0};
  Session::Impl &session;
  const char *name;
  std::mutex mutex, recordMutex, runningMutex;
  std::condition_variable filled, drained;
  std::vector<Task> ring;
  uint64_t pushed = 0, finished = 0;
  uint64_t wanted = nobody; ///< finished tasks that somebody waits for; the fewest
  bool stopping = false, idle = false;
  std::vector<OpRecord> records;
  struct {
    const char *node = nullptr, *op = nullptr;
    double start = 0; ///< seconds since the session began
  } running;
  double reported = 0; ///< how long a task may run before it is named
  std::thread thread;  // last: it starts when all the rest exists
};

void Session::Impl::watch() {
  for (Stream::Impl *stream : watched)
    stream->watch();
}

void watchStreams(Session &session, double patience, OnStuck report) {
  session.impl->onStuck = std::move(report);
  session.impl->patience = patience;
}

Stream::Stream(Session &session, const char *name)
    : session(session), impl(std::make_unique<Impl>(*session.impl, name)) {}
Stream::~Stream() = default;

void Stream::record(Event event) {
  Session::Impl &owner = *session.impl;
  uint64_t generation;
  {
    std::lock_guard<std::mutex> lock(owner.eventMutex);
    generation = ++owner.event(event).recorded;
  }
  impl->push({nullptr, nullptr, [&owner, event, generation] {
                {
                  std::lock_guard<std::mutex> lock(owner.eventMutex);
                  owner.event(event).reached = generation;
                }
                owner.eventReached.notify_all();
              }});
}

void Stream::wait(Event event) {
  Session::Impl &owner = *session.impl;
  uint64_t generation;
  {
    std::lock_guard<std::mutex> lock(owner.eventMutex);
    generation = owner.event(event).recorded;
  }
  impl->push({nullptr, nullptr, [&owner, event, generation] {
                std::unique_lock<std::mutex> lock(owner.eventMutex);
                owner.eventReached.wait(lock, [&] { return owner.event(event).reached >= generation; });
              }});
}

void Stream::synchronize() {
  impl->drain();
  session.impl->rethrow();
}

void Stream::launch(const char *node, const char *op, std::function<void()> work, size_t bytes) {
  impl->push({node, op, std::move(work), bytes});
}

void *Stream::native() const { return nullptr; }

void *Stream::address(const Tensor &tensor) const {
  const Arena &arena = tensor.space == Space::Device ? session.impl->device : session.impl->host;
  if (!tensor.present)
    return nullptr;
  if (tensor.space == Space::Spill)
    throw std::invalid_argument("the bytes of the spill arena are the pool's");
  if (tensor.offset + tensor.bytes() > arena.size())
    throw std::out_of_range("a tensor at [" + std::to_string(tensor.offset) + ", " +
                            std::to_string(tensor.offset + tensor.bytes()) + ") of an arena of " +
                            std::to_string(arena.size()) + " bytes");
  std::atomic<size_t> &peak = session.impl->peaks[static_cast<int>(tensor.space)];
  const size_t end = tensor.offset + tensor.bytes();
  for (size_t seen = peak; seen < end && !peak.compare_exchange_weak(seen, end);)
    ;
  return arena.base() + tensor.offset;
}

Session::Session(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile, PoolSize pool)
    : impl(std::make_unique<Impl>(deviceBytes, hostBytes, eventCount, hostFile, pool)), compute(*this, "compute"),
      toHost(*this, "to host"), toDevice(*this, "to device"), codec(*this, "codec") {}

// Every wait's record was enqueued before it, so all streams run dry whichever is joined first.
Session::~Session() = default;

void Session::enqueue(const std::function<void(Session &)> &body) {
  if (impl->pool)
    impl->pool->beginStep();
  body(*this);
}
void Session::enableGraphs(bool) {}

void Session::release(const Tensor &tensor) {
  if (!impl->faults.poison || !tensor.present)
    return;
  void *bytes = compute.address(tensor);
  compute.launch("release", "poison", [bytes, size = tensor.bytes()] { memset(bytes, 0xff, size); });
}

void Session::synchronize() {
  compute.impl->drain();
  toHost.impl->drain();
  toDevice.impl->drain();
  codec.impl->drain();
  impl->rethrow();
  if (impl->faults.poison) {
    impl->device.checkGuards();
    impl->host.checkGuards();
    if (impl->spill)
      impl->spill->checkGuards();
  }
}

void Session::read(const Tensor &tensor, void *to) {
  synchronize();
  memcpy(to, compute.address(tensor), tensor.bytes());
}

void Session::write(const Tensor &tensor, const void *from) {
  synchronize();
  memcpy(compute.address(tensor), from, tensor.bytes());
}

void Session::captureGradient(const char *parameter, const Tensor &gradient) {
  if (!onGradient)
    return;
  const void *data = compute.address(gradient);
  compute.launch(parameter, "capture gradient",
                 [this, parameter, gradient, data] { onGradient(parameter, gradient, data); });
}

size_t Session::peak(Space space) const {
  const size_t touched = space == Space::Spill ? 0 : impl->peaks[static_cast<int>(space)].load();
  if (space != Space::Host || !impl->pool || impl->pool->peakBytes() == 0)
    return touched;
  return impl->pool->begins() - impl->host.base() + impl->pool->peakBytes();
}

void Session::notePacked(size_t raw, size_t packed) {
  impl->rawBytes += raw;
  impl->packedBytes += packed;
}

Session::PackedBytes Session::packedBytes() const {
  const size_t spilled = impl->pool ? impl->pool->spilledBytes() : 0, peak = impl->pool ? impl->pool->peakBytes() : 0;
  return {impl->rawBytes, impl->packedBytes, spilled, peak};
}

PackedPool *Session::packedPool() const { return impl->pool ? &*impl->pool : nullptr; }

void Session::enableRecording(bool on) { impl->recording = on; }

std::vector<OpRecord> Session::takeRecords() {
  std::vector<OpRecord> all;
  for (Stream *stream : {&compute, &toHost, &toDevice, &codec}) {
    std::lock_guard<std::mutex> lock(stream->impl->recordMutex);
    all.insert(all.end(), stream->impl->records.begin(), stream->impl->records.end());
    stream->impl->records.clear();
  }
  return all;
}

} // namespace sluice
