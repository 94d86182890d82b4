// SPDX-License-Identifier: Apache-2.0
// Calls of the host in streams. With EMULATED_KILL=N,NANOSECONDS in the environment the process is killed so long after
// the N-th of them has begun, with a line that says whether it was still running.
#include "cuda_runtime.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <unistd.h>

namespace {
std::atomic<bool> running = false;
sem_t begun;

/// Before all that only wants to compute, if it may: else other work can hold it up until the call is over.
void killLater(long nanoseconds) {
  const sched_param priority{1};
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
  while (sem_wait(&begun) != 0) {
  }
  const timespec duration{0, nanoseconds};
  nanosleep(&duration, nullptr);
  dprintf(STDERR_FILENO, "killed %s a call of the host\n", running ? "within" : "after");
  kill(getpid(), SIGKILL);
}
} // namespace

void emulator::callHost(cudaHostFn_t call, void *data) {
  static const char *asked = getenv("EMULATED_KILL");
  static std::atomic<int> calls = 0;
  int wanted = 0;
  long nanoseconds = 0;
  if (!asked || sscanf(asked, "%d,%ld", &wanted, &nanoseconds) != 2 || ++calls != wanted)
    return call(data);
  sem_init(&begun, 0, 0);
  std::thread(killLater, nanoseconds).detach();
  running = true;
  sem_post(&begun);
  call(data);
  running = false;
}
