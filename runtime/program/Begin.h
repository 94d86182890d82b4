// SPDX-License-Identifier: Apache-2.0
// What comes before the first step, whether a program or a library begins it: kernels, then a session with first
// values.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Initialize.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace sluice {

/// Threads, kernels and primitives, before any memory is taken. `threads`: those that compute; unless given, on the
/// host as many as planned, beside a GPU as many as the machine has. Throws MemoryNotAvailable where a kernel needs
/// more than its slot.
void prepareKernels(const Program &program, const Entry &entry, std::optional<int64_t> threads);

/// The arenas of a program, `deviceBytes` for the first. `hostFile`: of what is offloaded, which must not exist; null:
/// host memory.
std::unique_ptr<Session> openSession(const Program &program, size_t deviceBytes, const char *hostFile);

/// Sets what steps read, and gives all variables their first values, but for those of the weights file that are given
/// later; averages have none before startDerived(). `say` hears of a kernel that does not end.
void beginSession(Session &session, const Program &program, const StepState &state,
                  std::map<int, ParameterGroup> groups, bool graphs, std::function<void(const std::string &)> say,
                  const GivenLater &later = nullptr);

/// Throws UsageError for a file of somebody else's, which the arena file would replace; `flag` names it.
void requireUnused(const std::string &flag, const std::string &path);

} // namespace sluice
