// SPDX-License-Identifier: Apache-2.0
// The only file of the host runtime that is compiled for every processor of its family. It calls the C library alone:
// what the standard library inlines may be linked from an object that is compiled for more.
#include "runtime/host/Processor.h"

#include "runtime/CpuTable.h"
#include "runtime/Inside.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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
#ifdef __aarch64__
int sluice::processorLevel() {
  const unsigned long has = getauxval(AT_HWCAP);
  return firstArmLevel + (!(has & HWCAP_ATOMICS) ? 0 : !(has & HWCAP_SVE) ? 1 : 2);
}
#else
int sluice::processorLevel() { return 0; }
#endif
double sluice::slownessOfHalves(const char *) { return 0.5; }
#endif

#ifdef SLUICE_LEVEL
static constexpr bool isSame(const char *a, const char *b) { return *a == *b && (*a == 0 || isSame(a + 1, b + 1)); }
static_assert(isSame(SLUICE_LEVEL_NAME, sluice::factsOfCpu(SLUICE_LEVEL).name), "as Levels.cmake has it");

/// SLUICE_FAULT=processor: a processor of the level below.
static int levelHere() {
  const char *fault = getenv("SLUICE_FAULT");
  return fault && strcmp(fault, "processor") == 0 ? SLUICE_LEVEL - 1 : sluice::processorLevel();
}

static char lesser[400];
const char *sluice::lesserProcessor() { return lesser; }

/// The lowest number that programs may take: before static objects of every file.
__attribute__((constructor(101))) static void refuseLesserProcessor() {
  const int level = levelHere();
  if (level >= SLUICE_LEVEL)
    return;
  const bool known = sluice::isCpuLevel(level) && sluice::isArm(level) == sluice::isArm(SLUICE_LEVEL);
  const char *here = known ? sluice::factsOfCpu(level).name : sluice::isArm(SLUICE_LEVEL) ? "less" : "x86-64";
  const char *least = sluice::isArm(SLUICE_LEVEL) ? "armv8-a" : "x86-64-v2";
  char advice[100], line[400];
  snprintf(advice, sizeof advice, "and nothing can be built for less than %s", least);
  if (known)
    snprintf(advice, sizeof advice, "build it with --cpu=%s (in CMake: -DSLUICE_CPU=%s)", here, here);
  const int length =
      snprintf(line, sizeof line, "%s: error: this program was built for %s (%s), this processor has %s; %s\n",
               program_invocation_short_name, sluice::factsOfCpu(SLUICE_LEVEL).name,
               sluice::factsOfCpu(SLUICE_LEVEL).needs, here, advice);
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
