// SPDX-License-Identifier: Apache-2.0
// Three libraries print to one descriptor: C, C++ and LLVM.
#include "tools/StandardOutput.h"

#include "tools/Failure.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <iostream>

int sluice::finishOutput(const char *program, int status) {
  llvm::outs().flush();
  bool failed = !std::cout.flush();
  failed |= std::fflush(stdout) != 0 || std::ferror(stdout) || llvm::outs().has_error();
  llvm::outs().clear_error(); // else LLVM aborts at exit
  if (!failed || status != 0)
    return status;
  return fail(program, 1, "cannot write standard output");
}
