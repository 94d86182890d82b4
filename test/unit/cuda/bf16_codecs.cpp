// SPDX-License-Identifier: Apache-2.0
// Zero values of halves: every bit comes back.
#include "test/unit/cuda/Halves.h"
#include "test/unit/runtime/ZeroValues.h"

namespace sluice {
namespace {

// -0.0, and what is an infinity, a NaN or a denormal in one of the types.
TEST(HALF(PackingCopies), LeaveZerosOutAndBringThemBack) {
  expectZeroValuesBack<uint16_t>(half, {0x8000, 0x7f80, 0x7fc1, 0xff81, 0x7c00, 0xfe01, 0x0001, 0xbfc0, 0x4040});
}

TEST(HALF(PackingCopies), HalvesAreNotHalvedAgain) {
  Session session(size_t(1) << 16, size_t(1) << 16, 1);
  const Tensor x = device(0, {64}, Layout::RowMajor, half);
  const Tensor slot = host(0, {128}, Layout::RowMajor, DataType::U8);
  EXPECT_THROW(copyToHost(session.toHost, x, slot, "x", Codec{Codec::Fp16}), std::invalid_argument);
}

} // namespace
} // namespace sluice
