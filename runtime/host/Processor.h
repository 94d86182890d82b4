// SPDX-License-Identifier: Apache-2.0
// Which processors a program runs on, see runtime/Levels.cmake. Whatever links this file ends with exit status 3 and
// one line where the processor lacks the level that its runtime is compiled for: before main and before every other
// initialization of the program.
#pragma once

namespace sluice {

/// Level of this processor and its operating system, 1 to 4; 0: no x86-64.
int processorLevel();

} // namespace sluice
