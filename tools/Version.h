// SPDX-License-Identifier: Apache-2.0
// What --version of the tools prints.
#pragma once

#include <string>

namespace sluice {

/// The commit that the tools were built from, in short, or "unknown" where that was no git repository. A generated
/// source has it, the only one that another commit changes.
extern const char builtFrom[];

/// `VERSION+COMMIT`, as semantic versions tell a build, for what programs say of their compiler.
std::string compilerVersionText();

/// `TOOL VERSION (commit COMMIT, LLVM VERSION)`.
std::string versionText(const std::string &tool);

} // namespace sluice
