// SPDX-License-Identifier: Apache-2.0
// --init: first values of a model's tensors from a safetensors file under the names of PyTorch's state_dict.
#pragma once

#include "runtime/files/Safetensors.h"
#include "runtime/program/Preparation.h"
#include "runtime/program/WeightNames.h"

#include <string>
#include <vector>

namespace sluice {

class InitialWeights {
public:
  /// Opens the file and finds what fits; `words` are those of the flag. Throws DataError when a tensor has another
  /// shape or type than the model's and is not to be skipped, or when nothing fits.
  InitialWeights(const std::string &words, const Program &program);

  /// Overwrites the tensors that were found. Throws DataError where the file's checksums tell damage.
  void load(Session &session) const;
  /// What was taken, and what was not, a line each.
  std::string report() const;
  /// What the file says of how images were prepared for them; nothing where it says nothing.
  Preparation preparation() const { return readPreparation(file.metadata(), file.path()); }
  /// The files that are read.
  std::vector<std::string> paths() const;

private:
  /// Whether the tensor of that name fits the variable; else `why` says what it is.
  bool fits(const Variable &variable, const std::string &name, bool transpose, std::string &why) const;
  /// Throws DataError where tensors that are one in the model differ in the file.
  void requireOne(const Variable &variable, const std::string &name, const std::string &other) const;

  struct Found {
    const Variable *variable;
    std::string name; ///< in the file
    bool transpose;
  };
  const WeightFile words;
  const SafetensorsFile file;
  std::vector<Found> found;
  std::vector<std::string> missing, skipped, unused;
};

} // namespace sluice
