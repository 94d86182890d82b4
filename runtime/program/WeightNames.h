// SPDX-License-Identifier: Apache-2.0
// Weights of other programs: what --init and --export say of a file, and how its names go with those of the model.
#pragma once

#include "runtime/Program.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// The words of --init and --export: FILE[,map=MAPFILE][,skip-mismatched].
struct WeightFile {
  explicit WeightFile(const std::string &words);

  std::string path;
  std::optional<std::string> map;
  bool skipMismatched = false;

  bool isSafetensors() const; ///< by its ending
};

/// A tensor in a file.
struct WeightName {
  std::string name;
  bool transpose = false; ///< a matrix whose rows are the model's columns
};

/// Which tensor of a file goes with which of the model. Without a map both have one name; the map file is TOML, a line
/// for each exception:
///   "name in the model" = "name in the file"
///   "name in the model" = { name = "name in the file", transpose = true }
class WeightNames {
public:
  /// Throws DataError, with file and line, for a map that names what the program does not have.
  WeightNames(const std::optional<std::string> &mapFile, const Program &program);

  WeightName operator()(const Variable &variable) const;

private:
  std::map<std::string, WeightName> exceptions;
};

/// Whether a variable is a tensor of the model file: a parameter, a running statistic, or a constant that stands there
/// (frozen weights do).
bool isModelTensor(const Variable &variable);

/// A row-major matrix of 4-byte elements with its `rows` rows as columns.
void transposeMatrix(const char *from, char *to, int64_t rows, int64_t columns);

} // namespace sluice
