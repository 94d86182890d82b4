// SPDX-License-Identifier: Apache-2.0
// The handler may run on any thread.

#include "runtime/program/Interrupt.h"

#include "runtime/Printable.h"

#include <atomic>
#include <cstdio>
#include <utility>

namespace sluice {

static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
static std::atomic<int> noted{0};
static std::atomic<bool> asked{false}; ///< by a signal that somebody sent on purpose
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not wait for a lock");

static void note(int signal) {
  int none = 0;
  noted.compare_exchange_strong(none, signal);
  if (signal == SIGHUP || signal == SIGPIPE || !asked.exchange(true))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal); // once the handler has returned
}

InterruptGuard::InterruptGuard() {
  noted = 0;
  asked = false;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < count; ++i) {
    sigaction(signals[i], nullptr, &former[i]);
    if (signals[i] == SIGINT || former[i].sa_handler != SIG_IGN)
      sigaction(signals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (int i = 0; i < count; ++i)
    sigaction(signals[i], &former[i], nullptr);
}

static thread_local std::function<bool()> cancelled;

CancelScope::CancelScope(std::function<bool()> asked) { cancelled = std::move(asked); }
CancelScope::~CancelScope() { cancelled = nullptr; }

void sayLast(const std::string &line) {
  const std::string shown = printable(line) + "\n";
  std::fputs(shown.c_str(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    std::fputs(shown.c_str(), stderr);
}

static std::atomic<bool> amongRanks{false};
static std::atomic<int> agreed{0};

int notedAmongRanks() {
  amongRanks = true;
  return noted;
}

void endTogether(int signal) { agreed = signal; }

int interruptedBy() {
  if (amongRanks)
    return agreed;
  return cancelled && cancelled() ? SIGINT : noted.load();
}

} // namespace sluice
