// SPDX-License-Identifier: Apache-2.0
// From emitted source to a library that other programs link or load.
#pragma once

#include "runtime/Result.h"
#include "runtime/TargetTable.h"

#include <string>

namespace sluice::codegen {

/// The C identifier of a library's function sluice_program_...
std::string libraryIdentifier(const std::string &name);

/// Makes libNAME.so, libNAME.a and the header of a library of `source`, which was emitted for that name, in `folder`;
/// other files may appear there, too. Nothing is exported but sluice_...; what no function of sluice.h needs is left
/// out. `version`: of the compiler, which sluice_plan() tells. The functions that all libraries have are weak in the
/// archive, so that several go into one program.
Status buildLibrary(const std::string &source, const std::string &folder, const std::string &name, Target target,
                    const std::string &cpu, const std::string &version);

} // namespace sluice::codegen
