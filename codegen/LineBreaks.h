// SPDX-License-Identifier: Apache-2.0
// Breaks the long lines of generated C++.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace sluice::codegen {

/// The same program in lines of at most `width` characters. A comment that does not fit after its line moves
/// to the left or goes above it; code goes on four columns to the right after a comma or an operator, or before a call
/// of a result, in the outermost brackets that allow a line of reasonable length. Literals are taken apart where
/// nothing else helps, directives stay as they are.
std::string breakLines(llvm::StringRef text, size_t width = 120);

} // namespace sluice::codegen
