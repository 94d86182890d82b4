// SPDX-License-Identifier: Apache-2.0
// A signal handler may not walk a folder; it may start a program that does.
#include "tools/TemporaryFolder.h"

#include "codegen/RunCompiler.h"
#include "tools/Failure.h"

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace sluice;

namespace {

constexpr int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};
constexpr char prefix[] = ".sluicec-";
std::string toRemove; ///< what the handler removes; changed only while the signals are blocked

/// In a signal handler or after a crash: nothing that allocates, so that another process removes the files.
void removeFolder() {
  codegen::killCompiler();
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

/// A folder whose lock is held while the descriptor is open; -1 where it is not this user's, or somebody holds it.
int lockFolder(const fs::path &path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0)
    return folder;
  if (folder >= 0)
    close(folder);
  return -1;
}

/// Of processes that were killed and had no time to tidy up.
void removeStale(const fs::path &parent) {
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    const int lock = name.rfind(prefix, 0) == 0 && name.size() == sizeof prefix - 1 + 6 ? lockFolder(entry.path()) : -1;
    if (lock < 0)
      continue;
    fs::remove_all(entry.path(), ignored);
    close(lock);
  }
}

} // namespace

/// False when another process took the folder for a stale one before it was locked.
bool TemporaryFolder::make(const fs::path &parent) {
  std::string pattern = (parent / (std::string(prefix) + "XXXXXX")).string();
  if (!mkdtemp(pattern.data())) {
    reason = std::strerror(errno);
    return true;
  }
  lock = lockFolder(pattern);
  if (lock < 0 && !fs::exists(pattern))
    return false;
  folder = toRemove = pattern;
  return true;
}

/// Beside the output, since a rename to another file system would be a copy, of which somebody could see half. Signals
/// stay out until the handlers know the folder.
TemporaryFolder::TemporaryFolder(const fs::path &output) {
  const fs::path parent = output.parent_path().empty() ? fs::path(".") : output.parent_path();
  removeStale(parent);
  Blocked blocked;
  assert(toRemove.empty() && "one at a time");
  while (!make(parent))
    ;
  if (folder.empty())
    return;
  setCrashCleanup(removeFolder);
  for (int signal : endings)
    if (std::signal(signal, removeAndEnd) == SIG_IGN) // as nohup wants it
      std::signal(signal, SIG_IGN);
}

TemporaryFolder::~TemporaryFolder() {
  if (folder.empty())
    return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (lock >= 0)
    close(lock);
  Blocked blocked;
  setCrashCleanup(nullptr);
  toRemove.clear();
  for (int signal : endings)
    if (std::signal(signal, SIG_DFL) == SIG_IGN)
      std::signal(signal, SIG_IGN);
}
