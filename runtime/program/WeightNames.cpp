// SPDX-License-Identifier: Apache-2.0
// The options of a weight file stand after its name, which may hold commas itself.

#include "runtime/program/WeightNames.h"

#include "runtime/files/File.h"
#include "runtime/files/NamePattern.h"
#include "runtime/files/Toml.h"

#include <cstring>
#include <functional>

namespace sluice {

/// By the name, so that what stands after it is an option: else a file of another name would be written or looked for.
static bool isWeights(const std::string &path) { return endsWith(path, ".safetensors") || endsWith(path, ".onnx"); }

WeightFile::WeightFile(const std::string &words) : path(words) {
  static constexpr char mapOption[] = "map=", configOption[] = "config=";
  for (size_t comma; (comma = path.rfind(',')) != std::string::npos;) {
    const std::string option = path.substr(comma + 1);
    if (option == "skip-mismatched" && !skipMismatched)
      skipMismatched = true;
    else if (option == "trained-only" && !trainedOnly)
      trainedOnly = true;
    else if (option == "merged" && !merged)
      merged = true;
    else if (option == "peft" && !peft)
      peft = true;
    else if (option.compare(0, sizeof mapOption - 1, mapOption) == 0 && !map)
      map = option.substr(sizeof mapOption - 1);
    else if (option == "config" && !config)
      config = "";
    else if (option.compare(0, sizeof configOption - 1, configOption) == 0 && option.size() >= sizeof configOption &&
             !config)
      config = option.substr(sizeof configOption - 1);
    else if (isWeights(path.substr(0, comma)))
      throw UsageError(
          text("'", words, "': weights have no option '", option,
               "'; there are skip-mismatched, trained-only, merged, peft, map=FILE and config=FILE, each once"));
    else
      return;
    path.resize(comma);
  }
}

bool WeightFile::isSafetensors() const { return endsWith(path, ".safetensors"); }

bool isModelTensor(const Variable &variable) {
  if (variable.role == Role::Constant)
    return variable.exportOffset >= 0 && variable.asFloats().type == DataType::F32;
  return variable.role == Role::Parameter || variable.role == Role::State;
}

namespace {

constexpr int mostPatterns = 100;

/// What a line of a map says.
struct MapEntry {
  WeightName to;
  bool isPattern = false;
};

/// Nothing where it is neither a name nor some of them.
std::vector<std::string> namesOf(const toml::node &node) {
  std::vector<std::string> names;
  if (const auto name = node.value_exact<std::string>())
    return {*name};
  if (const toml::array *array = node.as_array())
    for (const toml::node &element : *array) {
      const auto name = element.value_exact<std::string>();
      if (!name)
        return {};
      names.push_back(*name);
    }
  return names;
}

std::optional<MapEntry> readEntry(const toml::node &node) {
  const toml::table *details = node.as_table();
  if (!details) {
    MapEntry entry{{namesOf(node)}};
    return entry.to.names.empty() ? std::nullopt : std::optional(entry);
  }
  MapEntry entry;
  for (const auto &[key, value] : *details) {
    const auto isTrue = value.value_exact<bool>();
    if (key == "name")
      entry.to.names = namesOf(value);
    else if ((key != "transpose" && key != "regex") || !isTrue)
      return std::nullopt;
    else
      (key == "transpose" ? entry.to.transpose : entry.isPattern) = *isTrue;
  }
  return entry.to.names.empty() ? std::nullopt : std::optional(entry);
}

using Fail = std::function<DataError(const std::string &what)>;

/// The tensors of the model that a line is about, each with what the line calls it.
class MapReader {
public:
  explicit MapReader(const Program &program) : program(program) {}

  std::vector<std::pair<const Variable *, WeightName>> read(const std::string &key, const MapEntry &entry,
                                                            const Fail &fail) {
    auto found = entry.isPattern ? matches(key, entry, fail) : named(key, entry, fail);
    for (const auto &[variable, name] : found)
      if (name.transpose && variable->asFloats().shape.rank != 2)
        throw fail(text("'", variable->name, "' is no matrix that could be transposed"));
    return found;
  }

private:
  std::vector<std::pair<const Variable *, WeightName>> named(const std::string &key, const MapEntry &entry,
                                                             const Fail &fail) const {
    for (int i = 0; i < program.variableCount; ++i)
      if (isModelTensor(program.variables[i]) && key == program.variables[i].name)
        return {{&program.variables[i], entry.to}};
    throw fail(text("the model has no tensor '", key, "'; sluicec --list-parameters lists them"));
  }

  std::vector<std::pair<const Variable *, WeightName>> matches(const std::string &key, const MapEntry &entry,
                                                               const Fail &fail) {
    if (++patterns > mostPatterns)
      throw fail(text("more than ", mostPatterns, " regular expressions"));
    std::regex pattern;
    try {
      pattern = namePattern(key, text("'", key, "'"));
    } catch (const UsageError &error) {
      throw fail(error.what());
    }
    std::vector<std::pair<const Variable *, WeightName>> found;
    for (int i = 0; i < program.variableCount; ++i) {
      const Variable &variable = program.variables[i];
      WeightName name{{}, entry.to.transpose};
      std::vector<std::string> others; // that the expression says nothing of
      for (const char *own : ownNames(variable)) {
        std::cmatch groups;
        if (!isModelTensor(variable) || !std::regex_match(own, groups, pattern)) {
          others.push_back(own);
          continue;
        }
        for (const std::string &form : entry.to.names)
          name.names.push_back(groups.format(form));
      }
      if (name.names.empty())
        continue;
      if (!name.transpose)
        name.names.insert(name.names.end(), others.begin(), others.end());
      const auto [before, isFirst] = matched.emplace(variable.name, key);
      if (!isFirst)
        throw fail(text("'", variable.name, "' matches '", before->second, "' and '", key, "'"));
      found.emplace_back(&variable, name);
    }
    if (found.empty())
      throw fail(text("'", key, "' matches no tensor of the model; sluicec --list-parameters lists them"));
    return found;
  }

  /// Its name, and those that modules share it by.
  std::vector<const char *> ownNames(const Variable &variable) const {
    std::vector<const char *> names = {variable.name};
    for (int i = 0; i < program.tiedCount; ++i)
      if (!std::strcmp(program.tied[i].variable, variable.name))
        names.push_back(program.tied[i].name);
    return names;
  }

  const Program &program;
  std::map<std::string, std::string> matched; ///< tensors, with the expression
  int patterns = 0;
};

} // namespace

WeightNames::WeightNames(const std::optional<std::string> &mapFile, const Program &program) {
  for (int i = 0; i < program.variableCount; ++i)
    if (isModelTensor(program.variables[i]))
      names[program.variables[i].name] = {{program.variables[i].name}};
  for (int i = 0; i < program.tiedCount; ++i)
    if (const auto found = names.find(program.tied[i].variable); found != names.end())
      found->second.names.push_back(program.tied[i].name);
  if (!mapFile)
    return;
  const toml::table map = readToml(*mapFile);
  MapReader reader(program);
  std::map<std::string, WeightName> byName;
  for (const auto &[key, node] : map) {
    const Fail fail = [&, &where = key.source()](const std::string &what) { return tomlError(*mapFile, where, what); };
    const std::string word(key.str());
    const std::optional<MapEntry> entry = readEntry(node);
    if (!entry)
      throw fail(text("'", word, "' expects \"NAME\" or [\"NAME\", ...] or { name = \"NAME\", transpose = true, ",
                      "regex = true }"));
    for (const auto &[variable, name] : reader.read(word, *entry, fail))
      (entry->isPattern ? names : byName)[variable->name] = name;
  }
  for (const auto &[variable, name] : byName)
    names[variable] = name;
}

void WeightNames::requireDistinct() const {
  std::map<std::string, std::string> owners;
  for (const auto &[variable, name] : names)
    for (const std::string &each : name.names)
      if (const auto [owner, isFirst] = owners.emplace(each, variable); !isFirst && owner->second != variable)
        throw DataError(text("the file would have '", each, "' for '", owner->second, "' and for '", variable,
                             "'; change the map"));
}

void transposeMatrix(const char *from, char *to, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + 4 * (c * rows + r), from + 4 * (r * columns + c), 4);
}

} // namespace sluice
