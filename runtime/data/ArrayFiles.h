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
  /// `said` names inputs of the program, or throws UsageError.
  ArrayFiles(Container container, const std::string &path, const Program &program, bool targets,
             const InputKinds &said);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override { return files; }
  Form form(int input) const override { return forms[static_cast<size_t>(input)]; }
  std::optional<ImageSize> imageSize() const override { return size; }
  Image readImage(int input, int64_t sample) const override;
  PlaneValues readPlanes(int input, int64_t sample) const override;
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;
  std::vector<std::string> notes() const override;

private:
  std::optional<InputKind> calledBy(const InputKinds &said, int input) const;
  bool takesImage(const NpyFile &array, int input, std::optional<InputKind> said) const;
  void refuseMarks(const NpyFile &array, int input) const;
  void noteSize(const NpyFile &array);
  bool liesOverImages(const NpyFile &array, int input) const;
  void checkArray(const NpyFile &array, int input) const;
  void chooseForms(const InputKinds &said);

  const Program &program;
  std::vector<std::optional<NpyFile>> arrays; ///< one per input; none for a target that is not wanted
  std::vector<Form> forms;                    ///< likewise
  std::vector<std::string> files;
  std::optional<ImageSize> size; ///< of the images, if there are any
  int64_t count = -1;
};

} // namespace sluice
