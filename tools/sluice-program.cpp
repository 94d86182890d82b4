// SPDX-License-Identifier: Apache-2.0
// Prints the flags that all programs have, for their manual page: sluice-program(1).
#include "runtime/program/HelpText.h"

#include <cstdio>

int main() {
  const std::string help = sluice::programHelp(
      "PROGRAM",
      "A program that sluicec made trains the model that it was made of: PROGRAM is the name that it was given.");
  return std::fputs(help.c_str(), stdout) < 0;
}
