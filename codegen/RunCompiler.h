// SPDX-License-Identifier: Apache-2.0
// The C++ compiler as a process of its own, which ends with the one that started it.
#pragma once

#include <string>
#include <vector>

namespace sluice::codegen {

/// Runs a program with `arguments`, the first of which is its name; what it prints becomes part of the error. It and all that it starts
/// are a process group of their own, and `folder` takes their temporary files and their output.
std::string runCompiler(const std::string &compiler, const std::vector<std::string> &arguments, const std::string &folder);

/// Kills the group that is running, if any, and waits for its leader. For signal handlers.
void killCompiler();

} // namespace sluice::codegen
