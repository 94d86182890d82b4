// SPDX-License-Identifier: Apache-2.0
// See Version.h.
#include "tools/Version.h"

#include "llvm/Config/llvm-config.h"

std::string sluice::versionText(const std::string &tool) {
  return tool + " " SLUICE_VERSION " (commit " + builtFrom + ", LLVM " LLVM_VERSION_STRING ")";
}

std::string sluice::compilerVersionText() { return std::string(SLUICE_VERSION "+") + builtFrom; }
