// SPDX-License-Identifier: Apache-2.0
// What the tests of bf16 share: numbers as bf16 holds them, and the comparison of a kernel's result with that of f32.
#pragma once

#include "test/unit/runtime/Harness.h"

namespace sluice {

constexpr DataType half = DataType::BF16, full = DataType::F32;

inline Numbers halves(Numbers values) {
  for (double &v : values)
    v = static_cast<double>(widened(bfloat16Of(static_cast<float>(v))));
  return values;
}
inline Numbers randomHalves(int64_t count, unsigned seed) { return halves(randomNumbers(count, seed)); }

/// What run(harness, type) reads back for bf16 is what it reads for f32, rounded.
template <typename Run> void expectRounded(Run &&run) {
  Harness narrow, wide;
  const Numbers got = run(narrow, half), want = run(wide, full);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got, halves(want));
}

} // namespace sluice
