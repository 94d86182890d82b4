// SPDX-License-Identifier: Apache-2.0
// The thread pool after parallelFor. One caller at a time: a second concurrent caller runs its loop alone. Workers
// spin briefly after a loop, because the next one usually follows at once, then sleep so that the vendor library's
// threads get the cores.
#include "runtime/host/Parallel.h"

#include "runtime/Kernels.h"
#include "runtime/host/Processor.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <omp.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice {

namespace {

std::atomic<int> threadCount{0};

/// Links the check of the processor into everything that runs a kernel.
[[gnu::used]] int (*const level)() = processorLevel;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Pool {
public:
  explicit Pool(int workers) {
    try {
      for (int i = 0; i < workers; ++i)
        threads.emplace_back([this] { work(); });
    } catch (...) {
      stop(); // what the threads wait for goes before they do
      throw;
    }
  }

  ~Pool() { stop(); }

  int workers() const { return static_cast<int>(threads.size()); }

  void run(int64_t count, void (*fn)(void *, int64_t), void *arg) {
    bool anyoneAsleep;
    uint64_t generation;
    {
      std::lock_guard<std::mutex> lock(mutex);
      body = fn, context = arg, chunks = count;
      done.store(0, std::memory_order_relaxed);
      generation = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
      ticket.store(generation << 32, std::memory_order_release);
      anyoneAsleep = sleeping > 0;
    }
    if (anyoneAsleep)
      wake.notify_all();
    take({fn, arg, count, generation & 0xffffffff});
    for (int spins = 0; done.load(std::memory_order_acquire) < count; ++spins)
      spins < spinLimit ? pause() : std::this_thread::yield();
  }

private:
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
      ticket.store(ticket.load() + (1ull << 32));
    }
    wake.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  struct Job {
    void (*body)(void *, int64_t);
    void *context;
    int64_t chunks;
    uint64_t generation;
  };

  // The ticket holds (generation, next chunk): a chunk can only be taken while its job is the current one, so a worker
  // that wakes late never touches a job that has ended, and the caller never waits for a worker that holds no chunk.
  void take(const Job &job) {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    while (seen >> 32 == job.generation && static_cast<int64_t>(seen & 0xffffffff) < job.chunks) {
      if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel))
        continue;
      job.body(job.context, static_cast<int64_t>(seen & 0xffffffff));
      done.fetch_add(1, std::memory_order_acq_rel);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void work() {
    uint64_t last = 0;
    while (true) {
      int spins = 0;
      while (ticket.load(std::memory_order_acquire) >> 32 == last && spins++ < spinLimit)
        pause();
      Job job;
      {
        std::unique_lock<std::mutex> lock(mutex);
        ++sleeping;
        wake.wait(lock, [&] { return ticket.load(std::memory_order_relaxed) >> 32 != last; });
        --sleeping;
        if (stopping)
          return;
        last = ticket.load(std::memory_order_relaxed) >> 32;
        job = {body, context, chunks, last};
      }
      take(job);
    }
  }

  static constexpr int spinLimit = 1000;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> ticket{0};
  std::atomic<int64_t> done{0};
  void (*body)(void *, int64_t) = nullptr;
  void *context = nullptr;
  int64_t chunks = 0;
  int sleeping = 0;
  bool stopping = false;
};

std::mutex poolMutex;
std::unique_ptr<Pool> pool;

} // namespace

/// With `poolMutex` held.
static void providePool(int workers) {
  if (pool && pool->workers() == workers)
    return;
  pool.reset();
  pool = std::make_unique<Pool>(workers);
}

void detail::parallelRun(int64_t chunks, void (*body)(void *, int64_t), void *context) {
  const int workers = threads() - 1;
  std::unique_lock<std::mutex> lock(poolMutex, std::defer_lock);
  if (chunks > 1 && workers > 0 && lock.try_lock()) {
    providePool(workers);
    pool->run(chunks, body, context);
    return;
  }
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    body(context, chunk);
}

void setThreads(int count) {
  threadCount = std::max(1, count);
  adoptThreadCount();
  // Now rather than in the first step: a thread that cannot be had ends a program before it allocates anything.
  std::lock_guard<std::mutex> lock(poolMutex);
  if (count > 1)
    providePool(count - 1);
}

int threads() {
  if (threadCount == 0)
    threadCount = std::max(1u, std::thread::hardware_concurrency());
  return threadCount;
}

void adoptThreadCount() {
  thread_local int adopted = 0;
  if (adopted == threads())
    return;
  adopted = threads();
  omp_set_num_threads(adopted);
}

/// What would give oneDNN fewer threads than its kernels were made for: these wait for one another, or leave out parts.
static constexpr const char *limits[] = {"OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS"};

bool isOpenMPLimited() {
  return std::any_of(std::begin(limits), std::end(limits), [](const char *name) { return getenv(name) != nullptr; });
}

void ensureOpenMP(int, char **argv) {
  const bool limited = isOpenMPLimited();
  if (!limited && (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")))
    return;
  for (const char *name : limits)
    unsetenv(name);
  if (!getenv("GOMP_SPINCOUNT"))
    setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  execv("/proc/self/exe", argv);
  if (limited)
    throw MemoryNotAvailable("OMP_THREAD_LIMIT, OMP_DYNAMIC or OMP_MAX_ACTIVE_LEVELS would take threads from kernels "
                             "that were made for them: unset these");
  // Without /proc the program still works, only slower.
}

} // namespace sluice
