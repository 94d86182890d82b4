// SPDX-License-Identifier: Apache-2.0
// The only file of the host runtime that is compiled for every x86-64 processor. It calls the C library alone: what the
// standard library inlines may be linked from an object that is compiled for more.
#include "runtime/host/Processor.h"

#include "runtime/Inside.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#ifdef __x86_64__
/// What tells the levels apart; no processor has these and lacks the rest of its level.
int sluice::processorLevel() {
  __builtin_cpu_init();
  const bool v2 =
      __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? 4 : v3 ? 3 : v2 ? 2 : 1;
}

double sluice::slownessOfHalves(const char *implementation) {
  if (strstr(implementation, "amx"))
    return 0.25;
  __builtin_cpu_init();
  return !strstr(implementation, "avx512_core_bf16") ? 5 : __builtin_cpu_is("intel") ? 1.9 : 0.5;
}
#else
int sluice::processorLevel() { return 0; }
double sluice::slownessOfHalves(const char *) { return 0.5; }
#endif

#ifdef SLUICE_LEVEL
/// SLUICE_FAULT=processor: a processor of the level below.
static int levelHere() {
  const char *fault = getenv("SLUICE_FAULT");
  return fault && strcmp(fault, "processor") == 0 ? SLUICE_LEVEL - 1 : sluice::processorLevel();
}

static char lesser[400];
const char *sluice::lesserProcessor() { return lesser; }

/// The lowest number that programs may take: before static objects of every file.
__attribute__((constructor(101))) static void refuseLesserProcessor() {
  static const char *const names[] = {"", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  static const char *const needs[] = {"", "", "SSE4.2", "AVX2", "AVX-512"};
  const int level = levelHere();
  if (level >= SLUICE_LEVEL)
    return;
  char advice[100] = "and nothing can be built for less than x86-64-v2", line[400];
  if (level > 1)
    snprintf(advice, sizeof advice, "build it with --cpu=%s (in CMake: -DSLUICE_CPU=%s)", names[level], names[level]);
  const int length =
      snprintf(line, sizeof line, "%s: error: this program was built for %s (%s), this processor has %s; %s\n",
               program_invocation_short_name, names[SLUICE_LEVEL], needs[SLUICE_LEVEL], names[level], advice);
  if (sluice::isInsideLibrary()) {
    memcpy(lesser, line, static_cast<size_t>(length));
    return; // who opens the library hears of it
  }
  // Nothing better can be done when even this fails.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
  _exit(3);
}
#else
const char *sluice::lesserProcessor() { return ""; }
#endif
