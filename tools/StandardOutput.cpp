// SPDX-License-Identifier: Apache-2.0
// Three libraries print to one descriptor: C, C++ and LLVM.
#include "tools/StandardOutput.h"

#include "tools/Failure.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

int sluice::finishOutput(const char *program, int status) {
  llvm::outs().flush();
  std::error_code reason = llvm::outs().error();
  llvm::outs().clear_error(); // else LLVM aborts at exit
  errno = 0;
  const bool failed = !std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout);
  if (failed && !reason)
    reason = std::error_code(errno, std::generic_category());
  if ((!failed && !reason) || status != 0)
    return status;
  return fail(program, 1, "cannot write standard output" + (reason ? ": " + reason.message() : ""));
}
