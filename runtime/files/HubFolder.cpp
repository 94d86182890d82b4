// SPDX-License-Identifier: Apache-2.0
// {"metadata": {...}, "weight_map": {"name of a tensor": "name of a file", ...}}; a file of weights has its own list of
// tensors, so that names of files are all that counts here.

#include "runtime/files/HubFolder.h"

#include "runtime/files/File.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

namespace sluice {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char indexName[] = "model.safetensors.index.json";
constexpr uint64_t mostIndexBytes = uint64_t{64} << 20;
constexpr size_t mostFiles = 10000;

/// Collects the strings of weight_map; what else an index holds is nobody's business.
class IndexReader : public nlohmann::json_sax<Json> {
public:
  explicit IndexReader(const std::string &path) : path(path) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_array(size_t) override { return ++depth > 0; }
  bool end_array() override { return depth-- > 0; }
  bool start_object(size_t) override { return ++depth > 0; }
  bool end_object() override { return depth-- > 0; }

  bool key(string_t &value) override {
    if (depth == 1)
      inMap = value == "weight_map";
    return true;
  }
  bool string(string_t &value) override {
    if (depth != 2 || !inMap)
      return true;
    // Whoever made the file is not to choose what else is opened.
    if (!endsWith(value, ".safetensors") || value.find('/') != std::string::npos ||
        value.find('\0') != std::string::npos)
      throw DataError(text(path, ": '", value, "' is no name of a safetensors file in the same folder"));
    if (files.insert(std::move(value)).second && files.size() > mostFiles)
      throw DataError(text(path, ": names more than ", mostFiles, " files"));
    return true;
  }
  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &error) override {
    throw DataError(text(path, ": ", error.what()));
  }

  std::set<std::string> files;

private:
  const std::string &path;
  int64_t depth = 0; ///< of objects and arrays
  bool inMap = false;
};

std::vector<std::string> indexed(const std::string &folder, const std::string &index) {
  const InputFile file(index);
  if (file.size() > mostIndexBytes)
    throw DataError(text(index, ": ", file.size(), " bytes, an index of weights has ", mostIndexBytes, " at most"));
  std::string words(static_cast<size_t>(file.size()), '\0');
  file.readAt(0, words.data(), words.size());
  IndexReader reader(index);
  Json::sax_parse(words, &reader);
  if (reader.files.empty())
    throw DataError(text(index, ": no file is named in an object \"weight_map\""));
  std::vector<std::string> files;
  for (const std::string &name : reader.files)
    files.push_back(joinPath(folder, name));
  return files;
}

} // namespace

std::vector<std::string> weightFilesIn(const std::string &folder) {
  std::error_code error;
  if (const std::string index = joinPath(folder, indexName); fs::exists(index, error))
    return indexed(folder, index);
  std::set<std::string> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename().string(); endsWith(name, ".safetensors"))
      found.insert(name);
  if (error)
    throw DataError(text("cannot read ", folder, ": ", error.message()));
  if (found.size() != 1)
    throw DataError(text(folder, ": a folder of weights has ", indexName, " or one safetensors file, this has ",
                         found.empty() ? "neither" : text(found.size(), " of them, ", *found.begin(), " first"),
                         "; name a file"));
  return {joinPath(folder, *found.begin())};
}

} // namespace sluice
