// SPDX-License-Identifier: Apache-2.0
// What is said where a library is missing that programs link.
#include "codegen/Toolchain.h"

#include <gtest/gtest.h>

using sluice::codegen::checkDnnl;

TEST(HostToolchain, SaysWhereOneDnnWasLookedForAndWhatToDo) {
  const sluice::Status missing = checkDnnl("/nowhere/libdnnl.so");
  ASSERT_FALSE(missing);
  // docs/troubleshooting.md quotes the beginning.
  EXPECT_EQ(
      missing.error(),
      "oneDNN, which programs for this target link, is missing: looked for /nowhere/libdnnl.so; install it (Debian: "
      "libdnnl-dev), or write the program with --emit=project and build it where oneDNN is");
}

TEST(HostToolchain, LeavesALinkersWordToTheLinker) {
  EXPECT_TRUE(checkDnnl("-ldnnl"));
  EXPECT_TRUE(checkDnnl("/proc/self/exe")); // a path that is there
}
