// SPDX-License-Identifier: Apache-2.0
// A compiler's driver starts compilers, assemblers and linkers; a signal to the driver alone would leave them behind.
#include "codegen/RunCompiler.h"

#include "runtime/files/OutputFile.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;

namespace {

std::atomic<pid_t> group{0};
codegen::CompilerLimits limits;

/// Keeps all signals out, so that a handler finds the group whenever there is one.
class Blocked {
public:
  Blocked() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &former);
  }
  ~Blocked() { sigprocmask(SIG_SETMASK, &former, nullptr); }

private:
  sigset_t former;
};

/// The environment, with another folder for temporary files.
std::vector<std::string> environmentWith(const std::string &folder) {
  std::vector<std::string> words = {"TMPDIR=" + folder};
  for (char **word = environ; *word; ++word)
    if (std::string_view(*word).rfind("TMPDIR=", 0) != 0)
      words.push_back(*word);
  return words;
}

std::vector<char *> pointers(std::vector<std::string> &words) {
  std::vector<char *> list;
  for (std::string &word : words)
    list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

/// A process group of its own, in which no signal is blocked or handled.
void resetSignals(posix_spawnattr_t &attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/// Starts the process, which prints to `log`; an error number, or 0 and the process.
int start(std::vector<std::string> arguments, const std::string &folder, int log, pid_t &child) {
  std::vector<std::string> environment = environmentWith(folder);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  resetSignals(attributes);
  const int failure = posix_spawn(&child, arguments.front().c_str(), &files, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return failure;
}

/// The command line with the limit of memory, which holds before the compiler runs and for all that it starts. Nobody
/// may raise a limit that this process has already.
std::vector<std::string> limited(const std::vector<std::string> &arguments) {
  if (limits.bytes == 0)
    return arguments;
  rlimit given{};
  const bool bound = getrlimit(RLIMIT_AS, &given) == 0 && given.rlim_max < static_cast<rlim_t>(limits.bytes);
  const int64_t bytes = bound ? static_cast<int64_t>(given.rlim_max) : limits.bytes;
  std::vector<std::string> words = {"/bin/sh", "-c", "ulimit -v \"$0\" && exec \"$@\"",
                                    std::to_string(std::max<int64_t>(1, bytes / 1024))};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// False when the child has not ended in time. Kernels before 5.3 know no such descriptor, and wait for ever.
bool endsInTime(pid_t child) {
  const int descriptor = limits.seconds > 0 ? static_cast<int>(syscall(SYS_pidfd_open, child, 0)) : -1;
  if (descriptor < 0)
    return true;
  const auto start = std::chrono::steady_clock::now();
  int ended = 0;
  do {
    const int64_t passed =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    const int64_t left = std::max<int64_t>(0, std::min<int64_t>(limits.seconds, INT_MAX / 1000) * 1000 - passed);
    pollfd wait = {descriptor, POLLIN, 0};
    ended = poll(&wait, 1, static_cast<int>(left));
  } while (ended < 0 && errno == EINTR);
  close(descriptor);
  return ended != 0;
}

/// What a compiler prints, in memory: on a full disk it says why it failed, too.
class Output {
public:
  Output() : descriptor(memfd_create("compiler", MFD_CLOEXEC)) {}
  ~Output() { close(descriptor); }
  Output(const Output &) = delete;
  Output &operator=(const Output &) = delete;

  const int descriptor;
};

/// What it printed, as the end of an error of one line.
std::string saidIn(int log) {
  std::string said(2000, ' ');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(log, said.data(), said.size(), 0))));
  for (size_t at = 0; (at = said.find('\n', at)) != std::string::npos;)
    said.replace(at, 1, " | ");
  if (limits.bytes > 0 &&
      (llvm::StringRef(said).contains_insensitive("memory") || llvm::StringRef(said).contains("bad_alloc")))
    said += "; each of its processes may take " + std::to_string(limits.bytes) +
            " bytes, raise it with --limit compiler-bytes=N";
  return said;
}

} // namespace

void codegen::limitCompiler(const CompilerLimits &to) { limits = to; }

/// Signals stay out from before the start until `group` is set: a handler in between would end this process and leave
/// the compiler. The whole group is killed when time is up, and waited for, so that its files can be removed.
Status codegen::runCompiler(const std::string &compiler, const std::vector<std::string> &arguments,
                            const std::string &folder) {
  const Output log;
  pid_t child = 0;
  {
    Blocked blocked;
    if (const int failure = log.descriptor < 0 ? errno : start(limited(arguments), folder, log.descriptor, child))
      return Error{"cannot start " + compiler + ": " + std::strerror(failure)};
    group = child;
  }
  const bool inTime = endsInTime(child);
  if (!inTime)
    kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  group = 0;
  if (!inTime)
    return Error{"the C++ compiler has not ended after " + std::to_string(limits.seconds) +
                 " seconds; raise it with --limit compiler-seconds=N, or write the program with --emit=project"};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return Success{};
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                              : "status " + std::to_string(WEXITSTATUS(status));
  return Error{"the C++ compiler failed on the emitted program (" + how + "): " + saidIn(log.descriptor)};
}

Status codegen::writeText(const std::string &folder, const std::string &file, const std::string &text) {
  try {
    writeFile(folder + "/" + file, text, file);
  } catch (const DataError &error) {
    return Error{error.what()};
  }
  return Success{};
}

void codegen::killCompiler() {
  const pid_t leader = group.load();
  if (leader == 0)
    return;
  kill(-leader, SIGKILL);
  while (waitpid(leader, nullptr, 0) < 0 && errno == EINTR)
    ;
}
