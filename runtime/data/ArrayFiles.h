// SPDX-License-Identifier: Apache-2.0
// A folder of .npy files, one per input, whose first dimension counts the samples.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/files/Npy.h"

#include <optional>

namespace sluice {

class ArrayFiles : public SampleSource {
public:
  ArrayFiles(const std::string &folder, const Program &program, bool targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override;
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;

private:
  const Program &program;
  std::vector<std::optional<NpyFile>> files; ///< one per input; none for a target that is not wanted
  int64_t count = -1;
};

} // namespace sluice
