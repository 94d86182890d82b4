// SPDX-License-Identifier: Apache-2.0
// Error lines, and the handlers that print one when the program itself is broken. What runs in a signal handler writes
// to descriptors and into static memory only.
#include "tools/Failure.h"

#include "runtime/Printable.h"
#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <unistd.h>

using namespace sluice;

/// No program, though it may link all of the runtime: see isProgram in Destinations.cpp.
__attribute__((used, section(".sluice_tool"))) static const char toolMark[] = "sluice-tool";

namespace {

constexpr size_t longestWord = 500, longestMessage = 6000;

const char *programName = "sluicec";
char context[256];
std::atomic<void (*)()> cleanup{nullptr};
pid_t owner = 0; ///< whose crashes are reported; a child that tries something out may die of it in silence
alignas(16) char signalStack[1 << 16];

void put(const char *text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
    return; // nobody is there to hear it
}

std::string middleCut(const std::string &text, size_t most) {
  if (text.size() <= most)
    return text;
  return text.substr(0, most / 2) + "...(" + std::to_string(text.size()) + " bytes)..." +
         text.substr(text.size() - most / 4);
}

/// Words of files, names above all, may be as long as the file; what stands around them is what explains the error.
std::string shortened(const std::string &text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t space = std::min(text.find(' ', at), text.size());
    out += middleCut(text.substr(at, space - at), longestWord) + (space < text.size() ? " " : "");
    at = space + 1;
  }
  return middleCut(out, longestMessage);
}

/// A child that tries something out dies of the signal itself, so that whoever waits for it sees which one.
void onSignal(int number) {
  if (getpid() != owner) {
    std::signal(number, SIG_DFL);
    raise(number);
    return;
  }
  const char *name = number == SIGSEGV   ? "SIGSEGV"
                     : number == SIGABRT ? "SIGABRT"
                     : number == SIGFPE  ? "SIGFPE"
                     : number == SIGBUS  ? "SIGBUS"
                                         : "SIGILL";
  crash("crashed with ", name);
}

void onFatalError(void *, const char *reason, bool) { crash("fatal error: ", reason); }
void onBadAlloc(void *, const char *, bool) { crash("out of memory"); }
void onTerminate() { crash("an exception that nobody caught"); }

} // namespace

/// Failed assertions, the C library's own line would be another one.
extern "C" [[noreturn]] void __assert_fail(const char *assertion, const char *, unsigned, const char *) noexcept {
  crash("assertion failed: ", assertion);
}

void sluice::crash(const char *what, const char *detail) {
  static std::atomic<bool> crashing{false};
  if (crashing.exchange(true) || (owner && getpid() != owner))
    _exit(4); // while it was being reported, or on another thread
  for (const char *part : {programName, ": error: ", static_cast<const char *>(context), context[0] ? ": " : "",
                           "internal error: ", what, detail, "\n"})
    put(part);
  if (auto clean = cleanup.load())
    clean();
  _exit(4);
}

static void printLine(const char *program, const char *kind, const std::string &message) {
  std::cerr << program << kind << printable(shortened(message), 4 * longestMessage) << "\n";
}

int sluice::fail(const char *program, int status, const std::string &message) {
  printLine(program, ": error: ", message);
  return status;
}

int sluice::fail(const char *program, int status, const std::string &message, const std::vector<std::string> &notes) {
  fail(program, status, message);
  printNotes(program, notes);
  return status;
}

std::optional<int> sluice::failWithoutFolder(const char *program) {
  std::error_code failure, ignored;
  if (!std::filesystem::current_path(failure).empty())
    return std::nullopt;
  const std::string folder = std::filesystem::read_symlink("/proc/self/cwd", ignored).string();
  return fail(program, 1,
              "the working folder is missing: " + (folder.empty() ? "" : folder + ": ") + failure.message() +
                  "; change into a folder that is there");
}

void sluice::printNotes(const char *program, const std::vector<std::string> &notes) {
  for (const std::string &note : notes)
    printLine(program, ": note: ", note);
}

void sluice::setCrashContext(const std::string &input) {
  const std::string text = printable(input, sizeof context - 64);
  std::strncpy(context, text.c_str(), sizeof context - 1);
}

void sluice::setCrashCleanup(void (*function)()) { cleanup = function; }

/// SA_NODEFER lets a crash within the report reach crash(), which then ends the process at once.
void sluice::reportCrashes(const char *program) {
  programName = program;
  owner = getpid();
  stack_t stack{};
  stack.ss_sp = signalStack;
  stack.ss_size = sizeof signalStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL})
    sigaction(number, &action, nullptr);
  std::set_terminate(onTerminate);
  llvm::install_fatal_error_handler(onFatalError);
  llvm::install_bad_alloc_error_handler(onBadAlloc);
}
