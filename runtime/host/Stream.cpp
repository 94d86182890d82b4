// SPDX-License-Identifier: Apache-2.0
// Streams of the host runtime: a thread each, which runs tasks in the order in which they were launched.
#include "runtime/host/StreamState.h"

#include "runtime/host/Parallel.h"

#include <algorithm>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace sluice {

/// A copy that wakes up must not take the core of a thread that computes, which would wait for all of a copy shorter
/// than a time slice. Where the system knows no such thing copies are only less hidden.
static void leaveRunningThreadsAlone() {
#ifdef SCHED_BATCH
  const sched_param priority{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &priority);
#endif
}

void Stream::Impl::push(Task task) {
  std::unique_lock<std::mutex> lock(mutex);
  while (pushed - finished >= capacity)
    await(lock, pushed - capacity + 1);
  ring[pushed++ % capacity] = std::move(task);
  if (idle)
    filled.notify_one();
}

void Stream::Impl::loop() {
  // Messages take little of a core, and other ranks wait for them.
  if (const StreamWork work = factsOf(id).work; work == StreamWork::Copies || work == StreamWork::Codecs)
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

void Stream::Impl::execute(Task &task) {
  if (session.faults.delaySeed)
    delayTask(*session.faults.delaySeed, factsOf(id).label, finished);
  if (task.op && session.failed)
    return;
  adoptThreadCount();
  const double start = session.now();
  note(task, start);
  while (task.op && id == StreamId::Compute && session.faults.hangAt && finished >= *session.faults.hangAt)
    pause();
  try {
    task.work();
  } catch (...) {
    session.fail(std::current_exception());
  }
  note({}, 0);
  if (task.op && session.recording) {
    std::lock_guard<std::mutex> lock(recordMutex);
    records.push_back({task.node, task.op, id, start, session.now(), task.bytes});
  }
}

void Stream::Impl::watch(double late) {
  std::unique_lock<std::mutex> lock(runningMutex);
  running.start += late;
  const auto [node, op, start] = running;
  const double seconds = session.now() - start;
  if (!op || seconds < reported)
    return;
  reported = 2 * seconds;
  lock.unlock();
  session.onStuck(factsOf(id).label, node, op, seconds);
}

void Stream::Impl::await(std::unique_lock<std::mutex> &lock, uint64_t target) {
  const std::chrono::duration<double> look(std::min(1.0, session.patience));
  double looked = session.now();
  while (finished < target) {
    wanted = std::min(wanted, target);
    if (session.patience <= 0) {
      drained.wait(lock);
    } else if (drained.wait_for(lock, look) == std::cv_status::timeout) {
      lock.unlock();
      // A process that was stopped itself has not run for so long.
      const double now = session.now(), late = std::max(0.0, now - looked - 2 * look.count());
      looked = now;
      session.watch(late);
      lock.lock();
    }
  }
}

void Session::Impl::watch(double late) {
  for (Stream::Impl *stream : watched)
    stream->watch(late);
}

void watchStreams(Session &session, double patience, OnStuck report) {
  session.impl->onStuck = std::move(report);
  session.impl->patience = patience;
}

Stream::Stream(Session &session, StreamId id)
    : session(session), id(id), impl(std::make_unique<Impl>(*session.impl, id)) {}
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

void Stream::launch(Node node, const char *op, std::function<void()> work, size_t bytes) {
  impl->push({node, op, std::move(work), bytes});
}

void Stream::countZeros(std::initializer_list<Tensor> written) {
  if (!session.impl->countingZeros)
    return;
  const auto count = [this](const auto *values, int64_t elements) {
    impl->push({nullptr, nullptr, [this, values, elements] {
                  const auto zeros = static_cast<double>(std::count(values, values + elements, 0u));
                  std::lock_guard<std::mutex> lock(impl->recordMutex);
                  if (!impl->records.empty()) // a failed step has none
                    impl->records.back().zeros.push_back(zeros / static_cast<double>(std::max<int64_t>(1, elements)));
                }});
  };
  for (const Tensor &tensor : written)
    if (isHalf(tensor.type))
      count(data<const uint16_t>(tensor), tensor.shape.elements());
    else
      count(data<const uint32_t>(tensor), tensor.shape.elements());
}

void *Stream::native() const { return nullptr; }

void *Stream::address(const Tensor &tensor) const {
  const Arena &arena = tensor.space == Space::Device ? session.impl->device : session.impl->host;
  if (!tensor.present)
    return nullptr;
  if (tensor.space > Space::Host)
    throw std::invalid_argument(std::string("a tensor of the ") + factsOf(tensor.space).name + " arena has no address");
  session.impl->touch(tensor, arena.size());
  return arena.base() + tensor.offset;
}

} // namespace sluice
