// SPDX-License-Identifier: Apache-2.0
// What host programs and their runtime can be compiled for, in one table: runtime/Levels.cmake has the same names in
// the same order, which Processor.cpp checks.
#pragma once

namespace sluice {

struct CpuFacts {
  const char *name;             ///< of --cpu and SLUICE_CPU; what GCC and clang call -march
  const char *brief;            ///< the name's other spelling for --cpu
  const char *needs;            ///< what tells such a processor from one that the row before is for
  bool arm;                     ///< 64-bit ARM; else x86-64
  const char *profile = "host"; ///< of --device, where this machine is of another family
  int threads = 4;              ///< of --threads, likewise
};

/// A row's index plus `firstLevel` is its level: what programs, passes and kernels know it by. Within a family a
/// processor of one level runs what is compiled for a lesser one.
inline constexpr int firstLevel = 2, firstArmLevel = 5;
inline constexpr CpuFacts cpuTable[] = {{"x86-64-v2", "v2", "SSE4.2", false},
                                        {"x86-64-v3", "v3", "AVX2", false},
                                        {"x86-64-v4", "v4", "AVX-512", false},
                                        {"armv8-a", "armv8", "NEON", true, "raspberry-pi-5"},
                                        {"armv8.2-a", "armv8.2", "atomics", true, "raspberry-pi-5"},
                                        {"armv8.2-a+sve", "sve", "SVE", true, "graviton3", 8}};
inline constexpr int lastLevel = firstLevel + static_cast<int>(sizeof cpuTable / sizeof *cpuTable) - 1;
static_assert(cpuTable[firstArmLevel - firstLevel].arm && !cpuTable[firstArmLevel - firstLevel - 1].arm);

constexpr bool isCpuLevel(int level) { return level >= firstLevel && level <= lastLevel; }
constexpr const CpuFacts &factsOfCpu(int level) { return cpuTable[level - firstLevel]; }
constexpr bool isArm(int level) { return level >= firstArmLevel; }

/// Whether programs of that level are for another family of processors than this code. 0, this very machine: no.
constexpr bool isForeign(int level) {
#ifdef __aarch64__
  return level != 0 && !isArm(level);
#else
  return isArm(level);
#endif
}

} // namespace sluice
