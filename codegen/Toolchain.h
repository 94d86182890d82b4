// SPDX-License-Identifier: Apache-2.0
// With what emitted source is compiled and linked.
#pragma once

#include "runtime/Result.h"
#include "runtime/TargetTable.h"

#include <string>
#include <vector>

namespace sluice::codegen {

struct Home;

/// What builds programs and libraries of a target.
struct Toolchain {
  std::string compiler;                 ///< of emitted source; it also links programs
  std::vector<std::string> inPrograms;  ///< flags of programs alone, before the others
  std::vector<std::string> inLibraries; ///< of libraries: addresses that may move, a section for each function
  std::vector<std::string> compile;     ///< of both
  std::string linker;                   ///< a C++ compiler, which links libraries
  std::string binutils;                 ///< what their names begin with, as objcopy
  std::string runtime;                  ///< archive of the runtime
  std::vector<std::string> link;        ///< libraries after it, in words of both compiler and linker
  std::vector<std::string> ranks;       ///< before it, in programs for several ranks
};

/// `cpu`: a name of runtime/CpuTable.h, or native, which is what this compiler's own runtime was built for; of the host
/// alone. Of another family of processors a cross compiler takes the place of c++, with what tools/arm64.sh has put
/// beside the runtimes. Errors say what is missing and where it was looked for.
/// `ranks`: of a program for several, which needs MPI, on cuda NCCL as well.
Result<Toolchain> findToolchain(Target target, const std::string &cpu, bool ranks = false);
Result<Toolchain> findHostToolchain(const std::string &cpu, bool ranks);
/// The nvcc that CUDACXX names or that this compiler's own cuda runtime was built with, and what that was linked with.
Result<Toolchain> findCudaToolchain(bool ranks);

/// The parts of the runtime by which ranks talk, and their libraries as this compiler was built with them.
Result<std::vector<std::string>> findRanksLibraries(const Home &home, Target target);

/// What CXX names, or c++; `foreign`: a cross compiler, which has its own name.
Result<std::string> findCxxCompiler(bool foreign = false);

/// Tells emitted source which compiler made it (runtime/Version.h).
std::string versionFlag(const std::string &version);

/// Appends the words of a list from the build.
void addWords(const char *list, std::vector<std::string> &to);

/// Fails where oneDNN's `library`, an absolute path, is not there. A linker's word, as -ldnnl, is the linker's to find.
Status checkDnnl(const std::string &library);

/// Level (runtime/CpuTable.h) that this compiler's own runtime was built for; 0: for this very processor.
int ownLevel();

} // namespace sluice::codegen
