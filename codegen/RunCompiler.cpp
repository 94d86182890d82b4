// SPDX-License-Identifier: Apache-2.0
// A compiler's driver starts compilers, assemblers and linkers; a signal to the driver alone would leave them behind.
#include "codegen/RunCompiler.h"

#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;

namespace {

std::atomic<pid_t> group{0};

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

/// Starts the process; an error number, or 0 and the process.
int start(const std::string &compiler, std::vector<std::string> arguments, const std::string &folder, const std::string &log, pid_t &child) {
  std::vector<std::string> environment = environmentWith(folder);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failure = posix_spawn(&child, compiler.c_str(), &files, &attributes, pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return failure;
}

} // namespace

std::string codegen::runCompiler(const std::string &compiler, const std::vector<std::string> &arguments, const std::string &folder) {
  const std::string log = folder + "/compiler.log";
  pid_t child = 0;
  {
    Blocked blocked;
    if (const int failure = start(compiler, arguments, folder, log, child))
      return "cannot start " + compiler + ": " + std::strerror(failure);
    group = child;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  group = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return "";
  auto output = llvm::MemoryBuffer::getFile(log);
  std::string said = output ? (*output)->getBuffer().take_front(2000).str() : "";
  for (size_t at = 0; (at = said.find('\n', at)) != std::string::npos;) // errors are one line
    said.replace(at, 1, " | ");
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "status " + std::to_string(WEXITSTATUS(status));
  return "the C++ compiler failed on the emitted program (" + how + "): " + said;
}

void codegen::killCompiler() {
  const pid_t leader = group.load();
  if (leader == 0)
    return;
  kill(-leader, SIGKILL);
  while (waitpid(leader, nullptr, 0) < 0 && errno == EINTR)
    ;
}
