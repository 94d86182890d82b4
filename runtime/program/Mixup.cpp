// SPDX-License-Identifier: Apache-2.0
// Shares are drawn without libm's functions, so that a run has the same ones on every machine.

#include "runtime/program/Mixup.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {

void requireMixable(const Program &program) {
  if (program.batch < 2)
    throw UsageError(text("--mixup mixes the samples of a batch, this program's has ", program.batch));
  const auto *end = program.outputs + program.outputCount;
  if (std::none_of(program.outputs, end, [](const Output &output) { return output.target >= 0; }))
    throw UsageError("--mixup needs a loss that compares with targets, which this program's does not");
  if (program.classWeights || program.otherMean)
    throw UsageError("--mixup mixes classes in losses that know no weights of classes and no other means than theirs");
  for (int i = 0; i < program.inputCount; ++i) {
    const bool classes = std::any_of(program.outputs, end, [&](const Output &output) { // the loss takes both
      return output.target == i && (hasCrossEntropy(output) || (!output.loss && program.correct.present));
    });
    if (program.inputs[i].staging.type == DataType::F32 && program.inputs[i].ignoreIndex != Loss::none)
      throw UsageError(text("--mixup mixes numbers of '", program.inputs[i].name, "', of which ",
                            program.inputs[i].ignoreIndex, " does not count (--ignore-index)"));
    if (program.inputs[i].staging.type != DataType::F32 && !classes && !program.inputs[i].shared)
      throw UsageError(text("--mixup needs inputs of floats, '", program.inputs[i].name, "' takes integers"));
  }
}

/// Uniform in (0, 1).
static double between(uint64_t key, uint64_t index) {
  return (static_cast<double>(randomBits64(key, index) >> 12) + 0.5) * 0x1p-52;
}

/// Jöhnk 1964 up to 1: with U^(1/a) + V^(1/a) <= 1, the first one's part of the sum. Ulrich 1984 above: from a point in
/// the unit circle. Both reject a part of their draws, at most a half.
float mixupShare(double alpha, uint64_t key) {
  for (uint64_t i = 0;; i += 2) {
    if (alpha <= 1) {
      const double u = portableLog(between(key, i)), v = portableLog(between(key, i + 1));
      if (portableExp(u / alpha) + portableExp(v / alpha) <= 1)
        return static_cast<float>(1 / (1 + portableExp((v - u) / alpha)));
      continue;
    }
    const double u = 2 * between(key, i) - 1, v = 2 * between(key, i + 1) - 1, square = u * u + v * v;
    if (square < 1)
      return static_cast<float>(0.5 +
                                u * v / square * std::sqrt(1 - portableExp(2 / (2 * alpha - 1) * portableLog(square))));
  }
}

void mixSamples(float *values, int64_t samples, int64_t elements, float share) {
  const float rest = 1 - share;
  float *last = values + (samples - 1) * elements;
  const std::vector<float> former(last, last + elements);
  for (int64_t n = samples - 1; n >= 0; --n) { // each before the one that it is mixed into
    float *x = values + n * elements;
    const float *y = n > 0 ? x - elements : former.data();
    for (int64_t i = 0; i < elements; ++i)
      x[i] = share * x[i] + rest * y[i];
  }
}

} // namespace sluice
