// SPDX-License-Identifier: Apache-2.0
// Signals that ask a training run to end: SIGINT, SIGTERM, SIGHUP (the terminal is gone), SIGPIPE (the reader of the
// output is gone) and SIGXCPU (a limit on processor time comes near).
#pragma once

#include <csignal>
#include <functional>
#include <string>

namespace sluice {

/// Ends a run: it is thrown when all that such a run leaves has been written, and ends as the signal once it is caught.
struct Interrupted {
  int signal;
};

/// While it lives the first of these signals is only noted, so that the running step can end and a checkpoint be
/// written. A second SIGINT, SIGTERM or SIGXCPU ends the process at once; SIGHUP and SIGPIPE come with others, and
/// again, by themselves. Signals that whoever started the program had switched off (nohup) stay off, but for SIGINT,
/// which shells switch off for all that runs in the background.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

private:
  static constexpr int count = 5;
  struct sigaction former[count];
};

/// While it lives, `asked` may end what runs on this thread, too: it is called wherever interruptedBy() is.
class CancelScope {
public:
  explicit CancelScope(std::function<bool()> asked);
  ~CancelScope();
  CancelScope(const CancelScope &) = delete;
  CancelScope &operator=(const CancelScope &) = delete;
};

/// The signal noted since the last guard began, SIGINT where a CancelScope ends the run, 0: none.
int interruptedBy();

/// Several ranks end together: from the first call on, interruptedBy() is not the signal that this process has noted
/// but what was said here last. Returns the signal that it has noted.
int notedAmongRanks();
void endTogether(int signal);

/// Prints the last line of a run that was interrupted, on standard error where standard output takes nothing any more.
void sayLast(const std::string &line);

} // namespace sluice
