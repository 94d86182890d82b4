// SPDX-License-Identifier: Apache-2.0
// With what emitted source for the host is compiled and linked.
#pragma once

#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice::codegen {

struct HostToolchain {
  std::string compiler;             ///< $CXX or c++
  std::vector<std::string> compile; ///< flags of emitted source, without -c, -fPIE and the like
  std::string runtime;              ///< archive of the runtime for the processor
  std::vector<std::string> link;    ///< libraries after it
};

/// For `cpu`: x86-64-v2, -v3, -v4, or native, which is what this compiler's own runtime was built for. Errors say what
/// is missing and where it was looked for.
Result<HostToolchain> findHostToolchain(const std::string &cpu);

/// Level of x86-64 that this compiler's own runtime was built for, 2 to 4; 0: for this very processor.
int ownLevel();

} // namespace sluice::codegen
