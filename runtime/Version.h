// SPDX-License-Identifier: Apache-2.0
// Which compiler made a program or a library.
#pragma once

namespace sluice {

/// `VERSION+COMMIT` of the sluicec that compiled the program, which defines it (see Runtime.h); in a program that was
/// compiled by hand "unknown".
extern const char compilerVersion[];

} // namespace sluice
