// SPDX-License-Identifier: Apache-2.0
// From emitted source to something that runs: a binary linked with the built runtime, or a project folder that builds anywhere.
#pragma once

#include <string>

namespace sluice::codegen {

/// Compiles `source` (a file) into `executable` with the host's C++ compiler ($CXX or c++). Returns an error message, or nothing.
std::string buildExecutable(const std::string &source, const std::string &executable);

/// Copies what a standalone project needs beside its program.cpp into `folder`, which exists: runtime sources, nlohmann-json with its
/// licence, CMakeLists.txt. Returns an error message, or nothing.
std::string writeProjectFiles(const std::string &folder, const std::string &name);

} // namespace sluice::codegen
