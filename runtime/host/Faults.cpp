// SPDX-License-Identifier: Apache-2.0
// Fault modes, see Faults.h.
#include "runtime/host/Faults.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace sluice {

static bool variableIs(const char *name, const char *wanted) {
  const char *value = getenv(name);
  return value && strcmp(value, wanted) == 0;
}

Faults Faults::fromEnvironment() {
  Faults faults;
  faults.poison = variableIs("SLUICE_POISON", "1");
  faults.truncate = variableIs("SLUICE_FAULT", "truncate");
  if (const char *seed = getenv("SLUICE_DELAY"); seed && *seed)
    faults.delaySeed = strtoull(seed, nullptr, 10);
  if (const char *fault = getenv("SLUICE_FAULT"); fault && strncmp(fault, "hang:", 5) == 0)
    faults.hangAt = strtoull(fault + 5, nullptr, 10);
  return faults;
}

void delayTask(uint64_t seed, const char *stream, uint64_t task) {
  // A hash of all three: splitmix64's finalizer over their sum.
  uint64_t x = seed * 0x9e3779b97f4a7c15u + task;
  for (const char *c = stream; *c; ++c)
    x = x * 31 + static_cast<unsigned char>(*c);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  if (x & 1)
    std::this_thread::sleep_for(std::chrono::microseconds((x >> 1) % 500));
}

namespace {

std::atomic<const char *> lostBegin{nullptr}, lostEnd{nullptr};
std::atomic_flag said = ATOMIC_FLAG_INIT;
char message[512]; ///< written before the handler is installed

/// Only calls that are allowed in a signal handler.
void onBusError(int signal, siginfo_t *info, void *) {
  const char *address = static_cast<const char *>(info->si_addr);
  if (address < lostBegin || address >= lostEnd) {
    ::signal(signal, SIG_DFL); // runs into it again
    return;
  }
  // Several streams may run into it at once; the first speaks, the others wait for the end.
  while (said.test_and_set())
    pause();
  // Nothing better can be done when even this fails.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, strlen(message));
  _exit(3);
}

} // namespace

void stopOnLostPages(const char *begin, size_t bytes) {
  snprintf(message, sizeof message,
           "%s: error: the file of --offload-to lost some of its bytes: it was cut short or its disk failed; the last "
           "checkpoint is "
           "intact\n",
           program_invocation_short_name);
  lostBegin = begin;
  lostEnd = begin + bytes;
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace sluice
