// SPDX-License-Identifier: Apache-2.0
// The options of a weight file stand behind its name, which may hold commas itself.

#include "runtime/program/WeightNames.h"

#include "runtime/files/Toml.h"

#include <cstring>

namespace sluice {

WeightFile::WeightFile(const std::string &words) : path(words) {
  static constexpr char mapOption[] = "map=";
  for (size_t comma; (comma = path.rfind(',')) != std::string::npos;) {
    const std::string option = path.substr(comma + 1);
    if (option == "skip-mismatched" && !skipMismatched)
      skipMismatched = true;
    else if (option.compare(0, sizeof mapOption - 1, mapOption) == 0 && !map)
      map = option.substr(sizeof mapOption - 1);
    else
      return;
    path.resize(comma);
  }
}

bool WeightFile::isSafetensors() const {
  static const std::string ending = ".safetensors";
  return path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

bool isModelTensor(const Variable &variable) {
  if (variable.role == Role::Constant)
    return variable.exportOffset >= 0 && variable.tensor.type == DataType::F32;
  return variable.role == Role::Parameter || variable.role == Role::State;
}

static const Variable *find(const Program &program, std::string_view name) {
  for (int i = 0; i < program.variableCount; ++i)
    if (isModelTensor(program.variables[i]) && name == program.variables[i].name)
      return &program.variables[i];
  return nullptr;
}

WeightNames::WeightNames(const std::optional<std::string> &mapFile, const Program &program) {
  if (!mapFile)
    return;
  const toml::table map = readToml(*mapFile);
  for (const auto &[key, node] : map) {
    const auto fail = [&, &where = key.source()](const std::string &what) { return tomlError(*mapFile, where, what); };
    const Variable *variable = find(program, key.str());
    if (!variable)
      throw fail(text("the model has no tensor '", key.str(), "'; sluicec --list-parameters lists them"));
    const toml::table *details = node.as_table();
    const auto name = details ? (*details)["name"].value_exact<std::string>() : node.value_exact<std::string>();
    const auto transpose = details ? (*details)["transpose"].value_exact<bool>() : std::nullopt;
    if (!name || (details && details->size() != size_t{1} + transpose.has_value()))
      throw fail(text("'", key.str(), "' expects \"NAME\" or { name = \"NAME\", transpose = true }"));
    if (transpose.value_or(false) && variable->tensor.shape.rank != 2)
      throw fail(text("'", key.str(), "' is no matrix that could be transposed"));
    exceptions[std::string(key.str())] = {*name, transpose.value_or(false)};
  }
}

WeightName WeightNames::operator()(const Variable &variable) const {
  const auto found = exceptions.find(variable.name);
  return found == exceptions.end() ? WeightName{variable.name} : found->second;
}

void transposeMatrix(const char *from, char *to, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + 4 * (c * rows + r), from + 4 * (r * columns + c), 4);
}

} // namespace sluice
