// SPDX-License-Identifier: Apache-2.0
// Floats are uniform with mean 0 and variance 1 (targets of a binary loss 0 or 1), ids uniform below their bound, other
// integers one: a mask that lets all pass.

#include "runtime/data/Synthetic.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <cstring>

namespace sluice {

void Synthetic::read(int input, int64_t sample, char *values) const {
  const Input &in = program.inputs[input];
  const uint64_t key = randomKey(seed, nameKey(in.name), in.shared ? 0 : static_cast<uint64_t>(sample));
  std::memset(values, 0, sampleBytes(in));
  const auto elements = static_cast<uint64_t>(sampleElements(in));
  const bool binary = isTarget(program, input) && program.lossName && !std::strcmp(program.lossName, "bce-with-logits");
  for (uint64_t i = 0; i < elements; ++i) {
    if (in.staging.type == DataType::F32) {
      const float value = binary ? static_cast<float>(randomBits(key, i) >> 31) : 3.4641016f * (uniform(key, i) - 0.5f);
      std::memcpy(values + i * sizeof value, &value, sizeof value);
    } else if (in.staging.type == DataType::I64) {
      const int64_t value =
          in.upperBound > 0 ? static_cast<int64_t>(randomBits64(key, i) % static_cast<uint64_t>(in.upperBound)) : 1;
      std::memcpy(values + i * sizeof value, &value, sizeof value);
    }
  }
}

std::string Synthetic::name(int, int64_t sample) const { return text("synthetic: sample ", sample); }

} // namespace sluice
