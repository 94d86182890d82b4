// SPDX-License-Identifier: Apache-2.0
// Standard output as a result of the tools: what could not be printed, on a full disk say, is an error of the run.
#pragma once

namespace sluice {

/// The exit status: `status`, or 1 with a line on stderr where that is 0 and something could not be printed.
int finishOutput(const char *program, int status);

} // namespace sluice
