// SPDX-License-Identifier: Apache-2.0
// Weights of other programs: what --init and --export say of a file, and how its names go with those of the model.
#pragma once

#include "runtime/Program.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// The words of --init and --export: FILE[,map=MAPFILE][,skip-mismatched][,trained-only][,merged][,peft]
/// [,config[=CONFIG]].
struct WeightFile {
  explicit WeightFile(const std::string &words);

  std::string path;
  std::optional<std::string> map;
  bool skipMismatched = false; ///< of --init
  bool trainedOnly = false;    ///< of --export
  bool merged = false;         ///< of --export: adapters are added to their weights
  bool peft = false;           ///< of --export: what is trained, as PEFT keeps it

  std::optional<std::string> config; ///< of --export: a config.json beside it, of this one; empty: of none

  bool isSafetensors() const; ///< by its ending
  /// Whether --export writes trained tensors alone.
  bool isTrainedOnly() const { return trainedOnly || peft; }
};

/// A tensor as files have it.
struct WeightName {
  std::vector<std::string> names; ///< at least one; several where modules share it
  bool transpose = false;         ///< a matrix whose rows are the model's columns
};

/// Which tensors of a file go with which of the model. Without a map they have its name, and those that PyTorch's
/// modules share it by; the map file is TOML, a line for each exception:
///   "name in the model" = "name in the file"
///   "name in the model" = ["name in the file", "another one"]
///   "name in the model" = { name = "name in the file", transpose = true }
///   "expression for names in the model" = { name = "$1 and so on for its groups", regex = true }
/// What names a tensor counts over an expression.
class WeightNames {
public:
  /// Throws DataError, with file and line, for a map that names what the program does not have.
  WeightNames(const std::optional<std::string> &mapFile, const Program &program);

  const WeightName &operator()(const Variable &variable) const { return names.at(variable.name); }
  /// Throws DataError where two tensors of the model have one name in the file.
  void requireDistinct() const;

private:
  std::map<std::string, WeightName> names; ///< of all tensors of the model, by their ONNX names
};

/// Whether a variable is a tensor of the model file: a parameter, a running statistic, or a constant that stands there
/// (frozen weights do).
bool isModelTensor(const Variable &variable);

/// Whether training changes it; frozen weights it does not.
inline bool isTrained(const Variable &variable) { return variable.role != Role::Constant; }

/// A row-major matrix of 4-byte elements with its `rows` rows as columns.
void transposeMatrix(const char *from, char *to, int64_t rows, int64_t columns);

} // namespace sluice
