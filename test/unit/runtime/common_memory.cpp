// SPDX-License-Identifier: Apache-2.0
// Memory that a virtual machine is still being given is waited for; memory that is not there is not.
#include "runtime/FreeMemory.h"
#include "runtime/Stream.h"

#include <gtest/gtest.h>
#include <utility>

namespace sluice {
namespace {

constexpr size_t mebibyte = size_t(1) << 20;

/// A machine whose free memory grows by `growth` from look to look.
struct Growing {
  size_t available, growth, total;
  int *looks;
  MachineMemory operator()() {
    ++*looks;
    return {std::exchange(available, available + growth), total};
  }
};

TEST(FreeMemory, IsWaitedForWhileItGrows) {
  int looks = 0;
  requireFreeMemory(100 * mebibyte, "", Growing{40 * mebibyte, 30 * mebibyte, 1000 * mebibyte, &looks});
  EXPECT_EQ(looks, 3);
}

TEST(FreeMemory, IsRefusedWhereItDoesNotGrow) {
  int looks = 0;
  try {
    requireFreeMemory(100 * mebibyte, "the arenas need", Growing{40 * mebibyte, mebibyte, 1000 * mebibyte, &looks});
    FAIL() << "40 MiB are not 100";
  } catch (const MemoryNotAvailable &error) {
    EXPECT_STREQ(error.what(),
                 "the arenas need 104857600 bytes of memory, but this machine has only 42991616 available");
  }
  EXPECT_EQ(looks, 2);
}

TEST(FreeMemory, IsRefusedAtOnceWhereTheMachineHasLessInAll) {
  int looks = 0;
  EXPECT_THROW(requireFreeMemory(100 * mebibyte, "", Growing{40 * mebibyte, 30 * mebibyte, 90 * mebibyte, &looks}),
               MemoryNotAvailable);
  EXPECT_EQ(looks, 1);
}

} // namespace
} // namespace sluice
