// SPDX-License-Identifier: Apache-2.0
// Made-up samples, pure functions of (seed, input, sample).
#pragma once

#include "runtime/data/Source.h"

namespace sluice {

class Synthetic : public SampleSource {
public:
  Synthetic(const Program &program, uint64_t seed) : program(program), seed(seed) {}

  /// Eight batches, which repeat in every epoch, so that a model can learn them by heart and its loss falls; one of
  /// each shape at least.
  int64_t samples() const override { return std::max(8, program.bucketCount) * program.batch; }
  std::optional<Shape> shapeOf(int input, int64_t sample) const override;
  std::vector<std::string> paths() const override { return {}; }
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;

private:
  const Program &program;
  uint64_t seed;
};

} // namespace sluice
