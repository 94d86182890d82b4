// SPDX-License-Identifier: Apache-2.0
// The C++ compiler as a process of its own, which ends with the one that started it.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::codegen {

/// What the compiler may take; none where it is 0.
struct CompilerLimits {
  int64_t seconds = 0; ///< until its end
  int64_t bytes = 0;   ///< of addresses, in each of its processes
};

/// For all compilers that are run from now on.
void limitCompiler(const CompilerLimits &limits);

/// Runs a program with `arguments`, the first of which is its name; what it prints becomes part of the error. It and
/// all that it starts are a process group of their own, and `folder` takes their temporary files. What takes longer
/// than it may is killed.
Status runCompiler(const std::string &compiler, const std::vector<std::string> &arguments, const std::string &folder);

/// Writes a whole file of a folder that nobody else looks into yet; an error is about its name.
Status writeText(const std::string &folder, const std::string &file, const std::string &text);

/// Kills the group that is running, if any, and waits for its leader. For signal handlers.
void killCompiler();

} // namespace sluice::codegen
