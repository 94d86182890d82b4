// SPDX-License-Identifier: Apache-2.0
// One line on stderr and the exit status of the contract, whatever the message holds and whatever breaks.
#include "tools/Failure.h"

#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace sluice {
namespace {

extern "C" void __assert_fail(const char *, const char *, unsigned, const char *) noexcept;

/// Runs `broken` in a process of its own with the handlers in place, and says what it ended with.
template <typename Broken> void expectCrash(const std::string &what, Broken broken) {
  EXPECT_EXIT(
      {
        reportCrashes("sluicec");
        setCrashContext("nets/a\x1b[2J.onnx");
        setCrashCleanup([] { std::fputs("cleaned", stderr); });
        broken();
      },
      testing::ExitedWithCode(4), "sluicec: error: nets/a.x1b.2J.onnx: internal error: " + what + "\n?cleaned")
      << what;
}

int64_t recurse(volatile int64_t depth) {
  if (depth < 0)
    return 0;
  volatile char here[512] = {};
  here[depth % 512] = 1;
  return recurse(depth + 1) + here[depth % 511];
}

TEST(Crash, SignalsBecomeOneLine) {
  for (auto [signal, name] : {std::pair<int, const char *>{SIGSEGV, "SIGSEGV"},
                              {SIGABRT, "SIGABRT"},
                              {SIGFPE, "SIGFPE"},
                              {SIGILL, "SIGILL"},
                              {SIGBUS, "SIGBUS"}})
    expectCrash(std::string("crashed with ") + name, [signal = signal] { raise(signal); });
}

#ifndef __SANITIZE_ADDRESS__ // whose stacks are larger than their guard
TEST(Crash, StackOverflowsAreReported) {
  expectCrash("crashed with SIGSEGV", [] { std::exit(static_cast<int>(recurse(0))); });
}
#endif

/// Neither said nor cleaned up after: outputs are the parent's.
TEST(Crash, ChildrenDieOfTheirSignals) {
  auto parent = [] {
    reportCrashes("sluicec");
    setCrashCleanup([] { std::fputs("cleaned", stderr); });
    const pid_t child = fork();
    if (child == 0)
      raise(SIGSEGV);
    int status = 0;
    waitpid(child, &status, 0);
    std::exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 1);
  };
  EXPECT_EXIT(parent(), testing::ExitedWithCode(0), "^$");
}

TEST(Crash, WhatLibrariesReportOnTheirOwnIsOneLineToo) {
  expectCrash("assertion failed: 1 == 2", [] { __assert_fail("1 == 2", "file.cpp", 1, "f"); });
  expectCrash("fatal error: out of registers", [] { llvm::report_fatal_error("out of registers"); });
  expectCrash("an exception that nobody caught", [] { std::terminate(); });
}

TEST(Failure, ShowsControlCharactersAndCutsWhatIsLong) {
  auto printed = [](const std::string &message) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(fail("sluicec", 1, message), 1);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printed("node 'a\nsluicec: error: b\x1b[31m\xff'"),
            "sluicec: error: node 'a\\x0asluicec: error: b\\x1b[31m\\xff'\n");
  std::string longName = printed("node '" + std::string(1 << 20, 'n') + "' (Relu, opset 17): cannot be imported");
  EXPECT_LT(longName.size(), 700u);
  EXPECT_NE(longName.find("(1048578 bytes)"), std::string::npos);
  EXPECT_NE(longName.find("' (Relu, opset 17): cannot be imported\n"), std::string::npos);
  std::string words;
  for (int i = 0; i < 100000; ++i)
    words += "word ";
  EXPECT_LT(printed(words).size(), 6000u);
}

} // namespace
} // namespace sluice
