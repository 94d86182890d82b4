// SPDX-License-Identifier: Apache-2.0
// Floats are uniform with mean 0 and variance 1 (targets of a binary loss 0 or 1), ids uniform below their bound, other
// integers one: a mask that lets all pass.

#include "runtime/data/Synthetic.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cstring>

namespace sluice {

/// Where one bound is missing, the number at the other one.
static int64_t idOf(const Input &in, uint64_t bits) {
  if (!in.isBounded())
    return 1;
  if (in.lowerBound == INT64_MIN || in.upperBound == INT64_MAX)
    return in.lowerBound == INT64_MIN ? in.upperBound - 1 : in.lowerBound;
  return in.lowerBound + static_cast<int64_t>(bits % static_cast<uint64_t>(in.upperBound - in.lowerBound));
}

/// Shapes by turns, each that of a bucket.
std::optional<Shape> Synthetic::shapeOf(int input, int64_t sample) const {
  if (program.bucketCount == 0)
    return std::nullopt;
  Shape shape = program.buckets[sample / program.batch % program.bucketCount].inputs[input].staging.shape;
  if (program.inputs[input].shared)
    return shape;
  std::copy(shape.dims + 1, shape.dims + shape.rank, shape.dims);
  --shape.rank;
  return shape;
}

/// Mean 0 and variance 1. Forced into what calls it, whose instructions it then has.
[[gnu::always_inline]] static inline void drawInto(char *values, uint64_t key, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i) {
    const float value = 3.4641016f * (uniform(key, i) - 0.5f);
    std::memcpy(values + i * sizeof value, &value, sizeof value);
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target("avx512f,avx512dq")]] static void drawWide(char *values, uint64_t key, uint64_t elements) {
  drawInto(values, key, elements);
}
#endif

/// Steps wait for the next batch, and it takes a core from them. Equal numbers whatever the processor has.
static void draw(char *values, uint64_t key, uint64_t elements) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512dq"))
    return drawWide(values, key, elements);
#endif
  drawInto(values, key, elements);
}

void Synthetic::read(int input, int64_t sample, char *values) const {
  const Input &in = program.inputs[input];
  const uint64_t key = randomKey(seed, nameKey(in.name), in.shared ? 0 : static_cast<uint64_t>(sample));
  const std::optional<Shape> own = shapeOf(input, sample);
  const auto elements = static_cast<uint64_t>(own ? own->elements() : sampleElements(in));
  const bool binary = std::any_of(program.outputs, program.outputs + program.outputCount, [&](const Output &output) {
    return output.target == input && hasLoss(output, "bce-with-logits");
  });
  if (in.staging.type == DataType::F32 && !binary)
    return draw(values, key, elements);
  std::memset(values, 0, elements * byteWidth(in.staging.type));
  for (uint64_t i = 0; i < elements; ++i) {
    if (in.staging.type == DataType::F32) {
      const auto value = static_cast<float>(randomBits(key, i) >> 31);
      std::memcpy(values + i * sizeof value, &value, sizeof value);
    } else if (in.staging.type == DataType::I64) {
      const int64_t value = idOf(in, randomBits64(key, i));
      std::memcpy(values + i * sizeof value, &value, sizeof value);
    }
  }
}

std::string Synthetic::name(int, int64_t sample) const { return text("synthetic: sample ", sample); }

} // namespace sluice
