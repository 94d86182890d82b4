// SPDX-License-Identifier: Apache-2.0
// Whether this runtime is a program's own, or part of a library that another program holds.
#pragma once

namespace sluice {

/// Defined by the emitted source of a library alone.
__attribute__((weak)) void insideLibrary();

/// Where a program would exit because the processor lacks what it was built for, a library returns this message; empty
/// if the processor suffices. Only the host's runtime has it.
__attribute__((weak)) const char *lesserProcessor();

/// In a library nothing may end the process or take its signals.
inline bool isInsideLibrary() { return insideLibrary != nullptr; }

} // namespace sluice
