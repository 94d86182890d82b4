// SPDX-License-Identifier: Apache-2.0
// A child process runs one trial after the other and writes its verdict of each to a pipe. Where it dies, the trial
// that it was at has failed, and another child goes on after it.
#include "passes/kernels/HostTrial.h"

#include <cerrno>
#include <csignal>
#include <map>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace sluice;

namespace {

/// Seconds of processor time of each thread for one trial, of a few hundred million operations; wall time for a child
/// that waits.
constexpr rlim_t secondsOfTrial = 5;
constexpr int mostMilliseconds = 120000;

using Trials = std::vector<HostTrialCase>;
using Run = std::function<bool(const HostTrialCase &)>;

/// In the child: a trial that exceeds its share of processor time ends the process.
[[noreturn]] void runTrials(const Trials &trials, size_t first, int verdicts, const Run &run) {
  crashQuietly();
  for (size_t i = first; i < trials.size(); ++i) {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    rlimit limit{};
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                                                  static_cast<rlim_t>(threads()) * secondsOfTrial);
    setrlimit(RLIMIT_CPU, &limit);
    const char verdict = run(trials[i]) ? 1 : 0;
    if (write(verdicts, &verdict, 1) != 1)
      break;
  }
  _exit(0);
}

/// Tries `trials` from `first` on in a child; the verdicts until it ended, at least one.
std::vector<bool> tryInChild(const Trials &trials, size_t first, const Run &run) {
  const std::vector<bool> unknown(trials.size() - first, true); // without a child nothing is known against the kernels
  int ends[2];
  if (pipe(ends))
    return unknown;
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]), close(ends[1]);
    return unknown;
  }
  if (child == 0) {
    close(ends[0]);
    runTrials(trials, first, ends[1], run);
  }
  close(ends[1]);
  std::vector<bool> verdicts;
  for (pollfd ready{ends[0], POLLIN, 0};;) {
    const int count = poll(&ready, 1, mostMilliseconds);
    if (count < 0 && errno == EINTR) // a signal says nothing about the kernel
      continue;
    char verdict = 0;
    if (count <= 0 || read(ends[0], &verdict, 1) != 1)
      break;
    verdicts.push_back(verdict == 1);
  }
  close(ends[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (verdicts.size() < trials.size() - first)
    verdicts.push_back(false);
  return verdicts;
}

} // namespace

void sluice::crashQuietly() {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGXCPU})
    std::signal(signal, SIG_DFL);
  const rlimit noCore{0, 0};
  setrlimit(RLIMIT_CORE, &noCore);
}

// `known` is the process's: what was tried is not tried again by another module or try of planning. A case counts as
// working until its verdict is there, so that each is listed once.
bool sluice::everythingWorks(std::vector<AlgorithmChoice> &choices, bool alternatives, const Run &run) {
  static std::map<HostTrialCase, bool> known;
  Trials fresh;
  auto each = [&](auto &&visit) {
    for (AlgorithmChoice &choice : choices)
      for (int i : alternatives ? choice.unbeaten() : std::vector<int>{choice.chosen})
        if (auto trial = trialOf(choice.op, choice.offered[i]))
          visit(choice, i, *trial);
  };
  each([&](AlgorithmChoice &, int, const HostTrialCase &trial) {
    if (known.try_emplace(trial, true).second)
      fresh.push_back(trial);
  });
  for (size_t first = 0; first < fresh.size();)
    for (bool verdict : tryInChild(fresh, first, run))
      known[fresh[first++]] = verdict;
  std::vector<std::pair<AlgorithmChoice *, int>> broken;
  each([&](AlgorithmChoice &choice, int i, const HostTrialCase &trial) {
    if (!known[trial])
      broken.emplace_back(&choice, i);
  });
  llvm::sort(broken, [](const auto &a, const auto &b) { return a.second > b.second; }); // from the back of each list
  for (auto [choice, i] : broken)
    choice->offered.erase(choice->offered.begin() + i);
  return broken.empty();
}
