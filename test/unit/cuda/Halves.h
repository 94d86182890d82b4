// SPDX-License-Identifier: Apache-2.0
// What the tests of halves share: numbers as those hold them, and the comparison of a kernel's result with that of f32.
// Files that include this are compiled twice, for bf16 and, with SLUICE_HALF=F16, for f16: suites are called
// HALF(Name).
#pragma once

#include "test/unit/runtime/Harness.h"

#if defined(SLUICE_HALF)
#define HALF(name) Fp16##name
#else
#define SLUICE_HALF BF16
#define HALF(name) Bf16##name
#endif
/// INSTANTIATE_TEST_SUITE_P of a suite that is called so.
#define INSTANTIATE_HALVES(suite, ...) INSTANTIATE_TEST_SUITE_P(Shapes, suite, __VA_ARGS__)

namespace sluice {

constexpr DataType half = DataType::SLUICE_HALF, full = DataType::F32;
constexpr Precision halfPrecision = half == DataType::F16 ? Precision::FP16 : Precision::BF16;

static inline Numbers halves(Numbers values) {
  for (double &v : values) {
    const auto value = static_cast<float>(v);
    v = static_cast<double>(half == DataType::F16 ? widened(float16Of(value)) : widened(bfloat16Of(value)));
  }
  return values;
}
static inline Numbers randomHalves(int64_t count, unsigned seed) { return halves(randomNumbers(count, seed)); }

/// What run(harness, type) reads back for halves is what it reads for f32, rounded.
template <typename Run> static void expectRounded(Run &&run) {
  Harness narrow, wide;
  const Numbers got = run(narrow, half), want = run(wide, full);
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got, halves(want));
}

} // namespace sluice
