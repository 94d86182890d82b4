// SPDX-License-Identifier: Apache-2.0
// Arrays, one per input, whose first dimension counts the samples: .npy files of a folder, members of an .npz file,
// tensors of a safetensors file.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/files/Npy.h"

#include <optional>

namespace sluice {

class ArrayFiles : public SampleSource {
public:
  enum class Container { Folder, Npz, Safetensors };
  ArrayFiles(Container container, const std::string &path, const Program &program, bool targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override { return files; }
  int imageInput() const override { return image; }
  Image readImage(int64_t sample) const override;
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;

private:
  bool checkArray(const NpyFile &array, int input);

  const Program &program;
  std::vector<std::optional<NpyFile>> arrays; ///< one per input; none for a target that is not wanted
  std::vector<std::string> files;
  int64_t count = -1;
  int image = -1; ///< the input that takes floats where its array has bytes
};

} // namespace sluice
