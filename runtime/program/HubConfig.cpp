// SPDX-License-Identifier: Apache-2.0
// Ours are known by their member "sluice"; id2label and label2id are what transformers calls names of classes.
#include "runtime/program/HubConfig.h"

#include "runtime/Version.h"
#include "runtime/data/Source.h"
#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/ClassNames.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace sluice {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static constexpr uint64_t mostBytes = uint64_t{1} << 20;
static constexpr int deepest = 100; ///< writing goes as deep as what was read

static std::string placeOf(const WeightFile &to) { return fs::path(to.path).parent_path() / "config.json"; }

static Json readObject(const std::string &path) {
  const InputFile file(path);
  if (file.size() > mostBytes)
    throw DataError(text(path, ": ", file.size(), " bytes are too many for a config.json, at most ", mostBytes));
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  file.readAt(0, bytes.data(), bytes.size());
  bool tooDeep = false;
  const auto look = [&](int depth, Json::parse_event_t, Json &) { return !(tooDeep |= depth > deepest); };
  Json json = Json::parse(bytes, look, /*allow_exceptions=*/false);
  if (!json.is_object() || tooDeep)
    throw DataError(text(path, tooDeep ? ": nested too deeply" : ": is no JSON object"));
  return json;
}

void checkHubConfig(const WeightFile &to) {
  if (!to.config)
    return;
  if (!to.isSafetensors() || to.peft)
    throw UsageError(text("--export ", to.path, ": config is for FOLDER/model.safetensors of a whole model",
                          to.peft ? "; peft writes an adapter_config.json" : ""));
  if (!to.config->empty())
    readObject(*to.config);
  const std::string place = placeOf(to);
  if (fs::exists(place) && !readObject(place).contains("sluice"))
    throw DataError(text("--export ", to.path, ",config: ", place,
                         " was not written by Sluice: export into another "
                         "folder, or move that file away"));
}

/// Values of a batch as an array of the program has them.
static Json describe(const char *name, const Tensor &tensor) {
  std::vector<int64_t> shape(tensor.shape.dims, tensor.shape.dims + tensor.shape.rank);
  return {{"name", name}, {"type", tensor.type == DataType::F32 ? "float32" : "int64"}, {"shape", shape}};
}

static Json ownConfig(const Program &program) {
  Json config = {{"architectures", {fs::path(program.model).stem().string()}}};
  for (int i = 0; i < program.inputCount; ++i)
    if (isPredictedFrom(program, i))
      config["inputs"].push_back(describe(program.inputs[i].name, program.inputs[i].staging));
  for (int i = 0; i < program.outputCount; ++i)
    if (program.outputs[i].tensor.present)
      config["outputs"].push_back(describe(program.outputs[i].name, program.outputs[i].tensor));
  return config;
}

void writeHubConfig(const WeightFile &to, const Program &program, const Preparation &preparation) {
  Json config = to.config->empty() ? ownConfig(program) : readObject(*to.config);
  if (const std::vector<std::string> names = namesOf(program, namedTargets(program)[0], preparation.classes);
      !names.empty()) {
    Json byNumber = Json::object(), byName = Json::object();
    for (size_t i = 0; i < names.size(); ++i)
      byNumber[std::to_string(i)] = names[i], byName[names[i]] = i;
    config["id2label"] = std::move(byNumber);
    config["label2id"] = std::move(byName);
  }
  config["sluice"] = Json{{"version", std::string(compilerVersion)}, {"model", std::string(program.model)}};
  for (const auto &[key, value] : metadataOf(preparation))
    config["sluice"][key.substr(key.find('.') + 1)] = value;
  const std::string bytes = config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  OutputFile file(placeOf(to));
  file.write(bytes.data(), bytes.size());
  file.commit();
}

} // namespace sluice
