// SPDX-License-Identifier: Apache-2.0
// --init: first values of a model's tensors from safetensors files under the names of PyTorch's state_dict, such as a
// base and adapters for it.
#pragma once

#include "runtime/files/Safetensors.h"
#include "runtime/program/Preparation.h"
#include "runtime/program/WeightNames.h"

#include <list>
#include <map>
#include <string>
#include <vector>

namespace sluice {

class InitialWeights {
public:
  /// Opens the files and finds what fits; `flags` has the words of each flag, and of a tensor that several files hold
  /// the last one counts. Throws DataError when a tensor has another shape or type than the model's and is not to be
  /// skipped, or when nothing of a file fits.
  InitialWeights(const std::vector<std::string> &flags, const Program &program);

  /// Overwrites the tensors that were found. Throws DataError where a file's checksums tell damage.
  void load(Session &session) const;
  /// Whether one of the files has it.
  bool gives(const Variable &variable) const;
  /// What was taken of each file, and what was not, a line each. `resumes`: a checkpoint has what the files lack.
  std::string report(bool resumes) const;
  /// What the files say of how images were prepared for them, of each thing the last that says it.
  Preparation preparation() const;
  /// The files that are read.
  std::vector<std::string> paths() const;

private:
  /// A file with what its flag says.
  struct Source {
    Source(const std::string &flag, const Program &program);

    const std::string flag;
    const WeightFile words;
    const SafetensorsFile file;
    const WeightNames names;
    std::map<const Variable *, std::string> present; ///< tensors of the model, by what the file calls them
    std::vector<std::string> absent, unused;         ///< others of the model, others of the file
    int64_t taken = 0;                               ///< of `present` those that count
    std::vector<std::string> skipped;                ///< of the model, which do not fit
    std::string why;                                 ///< the first of these does not

    /// Whether the tensor of that name fits the variable; else `reason` says what it is.
    bool fits(const Variable &variable, const std::string &name, std::string &reason) const;
    void requireOne(const Variable &variable, const std::string &name, const std::string &other) const;
  };
  struct Found {
    const Variable *variable;
    const Source *source;
    std::string name; ///< in the file
  };
  void find(const Variable &variable);
  void check() const;
  static void load(Session &session, const Found &found);

  std::list<Source> sources; ///< whose addresses stay
  std::vector<Found> found;
  std::vector<std::string> missing; ///< in all of them
};

} // namespace sluice
