// SPDX-License-Identifier: Apache-2.0
// With what emitted source for the host is compiled and linked.
#pragma once

#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice::codegen {

/// What builds a host program.
struct HostToolchain {
  std::string compiler;             ///< $CXX, c++, or a cross compiler
  std::vector<std::string> compile; ///< flags of emitted source, without -c, -fPIE and the like
  std::string runtime;              ///< archive of the runtime for the processor
  std::vector<std::string> link;    ///< libraries after it
  std::vector<std::string> ranks;   ///< before it, in programs for several ranks
};

/// For `cpu`: a name of runtime/CpuTable.h, or native, which is what this compiler's own runtime was built for. Of
/// another family of processors a cross compiler takes the place of c++, with what tools/arm64.sh has put beside the
/// runtimes. Errors say what is missing and where it was looked for.
/// `ranks`: of a program for several, which needs MPI.
Result<HostToolchain> findHostToolchain(const std::string &cpu, bool ranks = false);

/// Fails where oneDNN's `library`, an absolute path, is not there. A linker's word, as -ldnnl, is the linker's to find.
Status checkDnnl(const std::string &library);

/// Level (runtime/CpuTable.h) that this compiler's own runtime was built for; 0: for this very processor.
int ownLevel();

} // namespace sluice::codegen
