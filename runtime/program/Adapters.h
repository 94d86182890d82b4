// SPDX-License-Identifier: Apache-2.0
// --export=FILE,merged: weights with their adapters added, which give what both give together (PEFT's
// merge_and_unload).
#pragma once

#include "runtime/Program.h"

#include <map>
#include <string>
#include <vector>

namespace sluice {

/// Throws UsageError where there is nothing to merge, or an adapter that cannot be.
void checkMerging(const Program &program);

/// How long the weights of each output are of the base of the adapter that has this variable for its magnitude.
std::vector<float> baseLengths(Session &session, const Program &program, const Variable &magnitude);

/// What is left of the tensors of a program's adapters. Reads their weights when it is made; all else it leaves to
/// those who export.
class MergedWeights {
public:
  /// Checked before.
  MergedWeights(Session &session, const Program &program);

  /// Whether a tensor of this name is added to another one.
  bool isAdded(const std::string &name) const;
  /// base + scale * first second, brought to the adapter's magnitude where it has one, in double and then rounded,
  /// row-major as the variable has it; null: it is none.
  const std::vector<float> *find(const std::string &name) const;
  /// Whether zeros in it make the adapters say nothing: their second matrices.
  bool isSecond(const std::string &name) const;

private:
  const Program &program;
  std::map<std::string, std::vector<float>> bases;
};

/// What exports have of a parameter: its running average, where there is one.
const Variable &exportedVariable(const Program &program, const Variable &variable);

} // namespace sluice
