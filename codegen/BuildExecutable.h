// SPDX-License-Identifier: Apache-2.0
// From emitted source to something that runs: a binary linked with the built runtime, or a project folder that builds
// anywhere.
#pragma once

#include "runtime/Result.h"
#include "runtime/TargetTable.h"

#include <string>

namespace sluice::codegen {

/// Compiles `source` (a file) into `executable`: for host with the C++ compiler ($CXX or c++), for cuda with the nvcc
/// that the cuda runtime was built with. Host programs and the runtime that they link are for `cpu`: x86-64-v2, -v3,
/// -v4, or native, which is what this compiler's own runtime was built for. `ranks`: host programs for several
/// processes link MPI, too. `version`: of the compiler, which the program tells.
Status buildExecutable(const std::string &source, const std::string &executable, Target target, const std::string &cpu,
                       bool ranks, const std::string &version);

/// Copies what a standalone project for `target` needs beside its program.cpp or program.cu into `folder`, which
/// exists: runtime sources, header-only libraries with their licences, CMakeLists.txt, which builds for `cpu`.
Status writeProjectFiles(const std::string &folder, const std::string &name, Target target, const std::string &cpu,
                         bool ranks, const std::string &version);

} // namespace sluice::codegen
