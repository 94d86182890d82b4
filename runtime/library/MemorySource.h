// SPDX-License-Identifier: Apache-2.0
// Samples that lie in the caller's memory.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/library/sluice.h"

#include <vector>

namespace sluice {

/// Reads what show() was given last, which has to stay until nothing is read any more. With targets all inputs and all
/// targets are wanted, without them what predictions depend on.
class MemorySource : public SampleSource {
public:
  /// `samples`: in each of what it is shown; 0: as many as the first of them has.
  MemorySource(const Program &program, int64_t samples) : program(program), wanted(samples), count(samples) {}

  struct Tensors {
    const sluice_tensor *list;
    int count;
  };
  /// Throws UsageError for tensors that are too many, too few, of other names, types or shapes than the program's, or
  /// null, naming the input and both sides.
  void show(Tensors inputs, const Tensors *targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override { return {}; }
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;
  int64_t samplesToCheck() const override { return 0; } // each is looked at when it is gathered

private:
  void take(Tensors tensors, const char *kind, const std::vector<int> &places);
  void take(int input, const sluice_tensor &tensor);

  const Program &program;
  const int64_t wanted;
  int64_t count = 0;
  bool isKnown = false;             ///< how many there are
  std::vector<const char *> values; ///< of each input; null: not shown
};

} // namespace sluice
