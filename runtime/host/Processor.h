// SPDX-License-Identifier: Apache-2.0
// Which processors a program runs on, see runtime/Levels.cmake. Whatever links this file ends with exit status 3 and
// one line where the processor lacks the level that its runtime is compiled for: before main and before every other
// initialization of the program.
#pragma once

namespace sluice {

/// Level of this processor and its operating system (runtime/CpuTable.h), 1 for an x86-64 below them; 0: of another
/// family than those.
int processorLevel();

/// How long an implementation of oneDNN, by its name, takes for products of bf16 beside what floats take here, as
/// measured: instructions of AVX-512 for bf16 need two cycles where Intel made them, and do the work of two
/// multiply-adds in one elsewhere; without them bf16 is emulated. AMX is fast.
double slownessOfHalves(const char *implementation);

} // namespace sluice
