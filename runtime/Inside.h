// SPDX-License-Identifier: Apache-2.0
// Whether this runtime is a program's own, or part of a library that another program holds.
#pragma once

namespace sluice {

/// Defined by the emitted source of a library alone.
__attribute__((weak)) void insideLibrary();

/// Where a program would exit because the processor lacks what it was built for, a library returns this message; empty
/// if the processor suffices. Only the host's runtime has it.
__attribute__((weak)) const char *lesserProcessor();

/// A call's turn on the device, where all handles of a library use one with the same handles of the vendor's libraries
/// and the same variables in its memory. Waits for another thread's call; false where this thread has the turn already,
/// in a callback. Only the cuda runtime has them.
__attribute__((weak)) bool takeDevice();
__attribute__((weak)) void leaveDevice();

/// In a library nothing may end the process or take its signals.
inline bool isInsideLibrary() { return insideLibrary != nullptr; }

} // namespace sluice
