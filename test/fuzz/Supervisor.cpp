// SPDX-License-Identifier: Apache-2.0
// fuzz TARGET [--runs=N] [--first=I] [--seed=S] [--findings=DIR] [FILE-OR-FOLDER...]   changed copies of the files, N
// of them fuzz TARGET --replay FILE...                                                          the files as they are
// Input I of a seed is always the same. Inputs run in a child with 2 GiB more memory than it begins with and 10 s of
// processor time each; when it dies the input is written to the findings' folder and a new child goes on after it.
// Exit status: 0, 1 with findings, 2 usage.
#include "test/fuzz/Target.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <filesystem>
#include <fstream>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace sluice::fuzz;

namespace {

constexpr uint64_t inputsPerChild = 20'000; ///< caches of libraries start anew
#if defined(__SANITIZE_ADDRESS__)
constexpr int secondsPerInput = 100; ///< of processor time; checks take their own
#else
constexpr int secondsPerInput = 10; ///< of processor time
#endif
constexpr int wallSeconds = 120; ///< without any progress, for what waits and does not compute
constexpr size_t mostCorpusBytes = 100'000;
constexpr rlim_t memoryPerChild = rlim_t{2} << 30;

struct Arguments {
  const Target *target = nullptr;
  uint64_t runs = 1000, first = 0, seed = 1;
  std::string findings = "findings";
  bool replay = false;
  std::vector<std::string> paths;
};

/// What child and parent share.
struct Shared {
  std::atomic<uint64_t> next, accepted, refused, slowestInput, slowestMicroseconds;
  char what[4096];
};
Shared *shared;

/// All files with the target's ending below the paths, in the order of their names.
std::vector<std::string> corpusOf(const Arguments &arguments) {
  std::vector<std::string> files, corpus;
  for (const std::string &path : arguments.paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    size_t begin = files.size();
    for (const auto &entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file() && entry.path().extension() == arguments.target->suffix &&
          entry.file_size() <= mostCorpusBytes)
        files.push_back(entry.path());
    std::sort(files.begin() + static_cast<long>(begin), files.end());
  }
  for (const std::string &file : files)
    corpus.push_back(readFile(file));
  return corpus;
}

std::string inputOf(const Arguments &arguments, const std::vector<std::string> &corpus, uint64_t index) {
  if (arguments.replay)
    return corpus[index];
  Random random(Random(arguments.seed).next() + index);
  const std::string &input = random.pick(corpus);
  return arguments.target->mutate(input, random.pick(corpus), random);
}

// The child.

void note(const std::string &what) {
  size_t used = std::strlen(shared->what);
  std::snprintf(shared->what + used, sizeof shared->what - used, "%s\n", what.c_str());
}

/// Leaves the signal's name and where it came from; only what a handler may call.
void onSignal(int signal) {
  char name[] = "signal 00: ";
  name[7] = static_cast<char>('0' + signal / 10), name[8] = static_cast<char>('0' + signal % 10);
  std::strncat(shared->what, signal == SIGPROF ? "too much processor time: " : name,
               sizeof shared->what - std::strlen(shared->what) - 1);
  void *frames[48];
  int count = backtrace(frames, 48);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
  _exit(77);
}

void outOfMemory() {
  std::set_new_handler(nullptr);
  finding("more than 2 GiB of memory");
}

/// Beyond what the process has already; AddressSanitizer's shadow needs it all.
void limitAddressSpace() {
#if !defined(__SANITIZE_ADDRESS__)
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  rlimit limit = {pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + memoryPerChild, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

void prepareChild() {
  static char stack[1 << 16];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF})
    sigaction(signal, &action, nullptr);
  void *frames[1];
  backtrace(frames, 1); // loads its library now, not in the handler
  limitAddressSpace();
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::set_new_handler(outOfMemory);
  onFinding = note;
}

void setTimer(int seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

uint64_t processorMicroseconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  auto of = [](const timeval &time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

[[noreturn]] void runChild(const Arguments &arguments, const std::vector<std::string> &corpus, uint64_t end,
                           const std::string &folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); // no child outlives its supervisor
  prepareChild();
  uint64_t before = processorMicroseconds();
  for (uint64_t index; (index = shared->next) < end; ++shared->next) {
    std::string input = inputOf(arguments, corpus, index);
    setTimer(secondsPerInput);
    Outcome outcome = arguments.target->run(input, folder);
    setTimer(0);
    ++(outcome == Outcome::Accepted ? shared->accepted : shared->refused);
    uint64_t now = processorMicroseconds();
    if (now - before > shared->slowestMicroseconds) {
      shared->slowestMicroseconds = now - before;
      shared->slowestInput = index;
    }
    before = now;
  }
  _exit(0);
}

// The parent.

/// Waits for a child; true when all was well. A child that neither ends nor goes on is ended.
bool waitFor(pid_t child, long &mostKilobytes) {
  int status = 0;
  uint64_t last = shared->next;
  auto moved = std::chrono::steady_clock::now();
  rusage used;
  for (;;) {
    pid_t ended = wait4(child, &status, WNOHANG, &used);
    if (ended == child)
      break;
    usleep(5000);
    auto now = std::chrono::steady_clock::now();
    if (shared->next != last)
      last = shared->next, moved = now;
    else if (now - moved > std::chrono::seconds(wallSeconds)) {
      std::snprintf(shared->what, sizeof shared->what, "no progress for %d s", wallSeconds);
      kill(child, SIGKILL);
      moved = now;
    }
  }
  mostKilobytes = std::max(mostKilobytes, used.ru_maxrss);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return true;
  if (!shared->what[0])
    std::snprintf(shared->what, sizeof shared->what, WIFSIGNALED(status) ? "signal %d" : "exit status %d",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return false;
}

void report(const Arguments &arguments, uint64_t findings, double seconds, long kilobytes) {
  uint64_t accepted = shared->accepted, refused = shared->refused;
  std::printf("%s: %llu inputs of seed %llu, %llu accepted, %llu refused, %llu findings; %.0f s, slowest %.2f s (input "
              "%llu), at most %ld MiB\n",
              arguments.target->name, static_cast<unsigned long long>(accepted + refused + findings),
              static_cast<unsigned long long>(arguments.seed), static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(findings), seconds,
              static_cast<double>(shared->slowestMicroseconds) * 1e-6,
              static_cast<unsigned long long>(shared->slowestInput), kilobytes / 1024);
  std::fflush(stdout);
}

/// Writes the input beside what is known of it.
void save(const Arguments &arguments, const std::vector<std::string> &corpus, uint64_t index) {
  fs::create_directories(arguments.findings);
  std::string name = arguments.findings + "/" + arguments.target->name + "-" + std::to_string(arguments.seed) + "-" +
                     std::to_string(index);
  std::string what = shared->what;
  std::ofstream(name + ".txt") << what;
  if (!arguments.replay)
    writeFile(name + arguments.target->suffix, inputOf(arguments, corpus, index));
  std::printf("finding: input %llu: %s\n", static_cast<unsigned long long>(index), what.substr(0, 300).c_str());
  std::fflush(stdout);
}

int supervise(const Arguments &arguments, const std::vector<std::string> &corpus, const std::string &folder) {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t end = arguments.replay ? corpus.size() : arguments.first + arguments.runs;
  uint64_t findings = 0, spoken = 0;
  long kilobytes = 0;
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (shared->next = arguments.replay ? 0 : arguments.first; shared->next < end;) {
    shared->what[0] = '\0';
    pid_t child = fork();
    if (child == 0)
      runChild(arguments, corpus, std::min(end, shared->next + inputsPerChild), folder);
    if (child < 0 || waitFor(child, kilobytes)) {
      if (child < 0)
        return std::perror("fork"), 2;
    } else {
      ++findings;
      save(arguments, corpus, shared->next);
      ++shared->next;
    }
    if (uint64_t minutes = static_cast<uint64_t>(seconds() / 60); minutes > spoken) {
      spoken = minutes;
      report(arguments, findings, seconds(), kilobytes);
    }
  }
  report(arguments, findings, seconds(), kilobytes);
  return findings ? 1 : 0;
}

bool number(const char *word, const char *flag, uint64_t &value) {
  size_t length = std::strlen(flag);
  if (std::strncmp(word, flag, length) != 0)
    return false;
  value = std::strtoull(word + length, nullptr, 10);
  return true;
}

bool parse(int argc, char **argv, Arguments &arguments) {
  if (argc < 2 || !(arguments.target = findTarget(argv[1])))
    return false;
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    if (number(argv[i], "--runs=", arguments.runs) || number(argv[i], "--first=", arguments.first) ||
        number(argv[i], "--seed=", arguments.seed))
      continue;
    if (word.rfind("--findings=", 0) == 0)
      arguments.findings = word.substr(11);
    else if (word == "--replay")
      arguments.replay = true;
    else if (word[0] == '-')
      return false;
    else
      arguments.paths.push_back(word);
  }
  return !arguments.paths.empty();
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: fuzz TARGET [--runs=N] [--first=I] [--seed=S] [--findings=DIR] FILE-OR-FOLDER...\n    "
                         "   fuzz TARGET --replay FILE...\ntargets:");
    for (const Target &target : targets())
      std::fprintf(stderr, " %s", target.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::vector<std::string> corpus = corpusOf(arguments);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: no file ending in %s to begin with\n", arguments.target->suffix);
    return 2;
  }
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = new (memory) Shared();
  std::string folder = fs::temp_directory_path() / "sluice-fuzz-XXXXXX";
  if (!mkdtemp(folder.data()))
    return std::perror("fuzz: temporary folder"), 2;
  int status = supervise(arguments, corpus, folder);
  fs::remove_all(folder);
  return status;
}
