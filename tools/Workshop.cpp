// SPDX-License-Identifier: Apache-2.0
// A signal handler may not walk a folder; it may start a program that does.
#include "tools/Workshop.h"

#include "tools/Failure.h"

#include <cassert>
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace sluice;

namespace {

constexpr int endings[] = {SIGINT, SIGTERM, SIGHUP};
std::string toRemove; ///< what the handler removes; changed only while the signals are blocked

void removeFolder() {
  if (pid_t child = fork(); child == 0) {
    execl("/bin/rm", "rm", "-rf", "--", toRemove.c_str(), static_cast<char *>(nullptr));
    _exit(1);
  } else if (child > 0) {
    waitpid(child, nullptr, 0);
  }
}

void removeAndEnd(int signal) {
  removeFolder();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// Keeps the signals out while the handler's data change.
class Blocked {
public:
  Blocked() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : endings)
      sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &former);
  }
  ~Blocked() { sigprocmask(SIG_SETMASK, &former, nullptr); }

private:
  sigset_t former;
};

} // namespace

Workshop::Workshop(const fs::path &output) {
  Blocked blocked;
  assert(toRemove.empty() && "one at a time");
  fs::path parent = output.parent_path().empty() ? fs::path(".") : output.parent_path();
  std::string pattern = (parent / ".sluicec-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    return;
  folder = toRemove = pattern;
  setCrashCleanup(removeFolder);
  for (int signal : endings)
    if (std::signal(signal, removeAndEnd) == SIG_IGN) // as nohup wants it
      std::signal(signal, SIG_IGN);
}

Workshop::~Workshop() {
  if (folder.empty())
    return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  Blocked blocked;
  setCrashCleanup(nullptr);
  toRemove.clear();
  for (int signal : endings)
    if (std::signal(signal, SIG_DFL) == SIG_IGN)
      std::signal(signal, SIG_IGN);
}
