// SPDX-License-Identifier: Apache-2.0
// Ranks and scales are those of the first adapter, and patterns say where others differ. A scale is kept as alpha =
// scale * rank, which PEFT divides by the rank again.
#include "runtime/program/Peft.h"

#include "runtime/Errors.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/WeightNames.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr char prefix[] = "base_model.model.";

/// The name in the model without adapters. PEFT wraps that model, and keeps what it trains of a layer as a whole in a
/// copy, LAYER.modules_to_save.ADAPTER.TENSOR.
std::string ownName(const std::string &name) {
  std::string own = name.compare(0, sizeof prefix - 1, prefix) == 0 ? name.substr(sizeof prefix - 1) : name;
  const std::string copies = ".modules_to_save.";
  if (const size_t at = own.rfind(copies); at != std::string::npos)
    if (const size_t end = own.find('.', at + copies.size()); end != std::string::npos)
      own.erase(at, end - at);
  return own;
}

constexpr char magnitudePart[] = ".lora_magnitude_vector";

/// Whether that begins there in the name of an adapter's tensor, which PEFT's own modules end with its name and
/// ".weight".
bool isMagnitude(const std::string &name, size_t at) {
  const size_t end = at + sizeof magnitudePart - 1;
  return name.compare(at, sizeof magnitudePart - 1, magnitudePart) == 0 &&
         (end == name.size() || (name[end] == '.' && endsWith(name, ".weight")));
}

/// Where ".lora_A", ".lora_B" or ".lora_magnitude_vector" begins in the name of an adapter's tensor; npos in others.
size_t partIn(const std::string &name) {
  if (const size_t at = name.rfind(magnitudePart); at != std::string::npos && isMagnitude(name, at))
    return at;
  for (const char *part : {".lora_A.", ".lora_B."})
    if (const size_t at = name.rfind(part); at != std::string::npos && endsWith(name, ".weight"))
      return at;
  return std::string::npos;
}

/// As PEFT has them: A [rank, inputs], B [outputs, rank].
struct Layer {
  int64_t rank;
  double alpha;
};

int64_t rankOf(const Program &program, const Adapter &adapter) {
  for (int i = 0; i < program.variableCount; ++i)
    if (!std::strcmp(program.variables[i].name, adapter.first))
      return program.variables[i].tensor.shape[0];
  return 0;
}

/// By the module that has the weight.
std::map<std::string, Layer> layersOf(const Program &program) {
  std::map<std::string, Layer> layers;
  for (int i = 0; i < program.adapterCount; ++i) {
    const Adapter &adapter = program.adapters[i];
    const std::string first = adapter.first;
    const size_t part = partIn(first);
    const int64_t rank = rankOf(program, adapter);
    if (part != std::string::npos)
      layers[ownName(first.substr(0, part))] = {rank, adapter.scale * static_cast<double>(rank)};
  }
  return layers;
}

/// Modules of trained tensors that are no adapter's.
std::vector<std::string> savedModules(const Program &program) {
  std::set<std::string> modules;
  for (int i = 0; i < program.variableCount; ++i) {
    const std::string name = ownName(program.variables[i].name);
    if (program.variables[i].role == Role::Parameter && partIn(name) == std::string::npos)
      modules.insert(name.substr(0, std::min(name.rfind('.'), name.size())));
  }
  return {modules.begin(), modules.end()};
}

std::string configOf(const Program &program) {
  const std::map<std::string, Layer> layers = layersOf(program);
  const Layer usual = layers.begin()->second;
  Json ranks = Json::object(), alphas = Json::object(), modules = Json::array();
  for (const auto &[module, layer] : layers) {
    modules.push_back(module);
    if (layer.rank != usual.rank)
      ranks[module] = layer.rank;
    if (layer.alpha != usual.alpha)
      alphas[module] = layer.alpha;
  }
  Json config = {{"peft_type", "LORA"},
                 {"task_type", nullptr},
                 {"base_model_name_or_path", nullptr},
                 {"inference_mode", true},
                 {"bias", "none"},
                 {"r", usual.rank},
                 {"lora_alpha", usual.alpha},
                 {"lora_dropout", 0.0},
                 {"use_rslora", false},
                 {"rank_pattern", ranks},
                 {"alpha_pattern", alphas},
                 {"fan_in_fan_out", false},
                 {"init_lora_weights", true},
                 {"target_modules", modules},
                 {"use_dora", program.adapters[0].magnitude != nullptr}};
  const std::vector<std::string> saved = savedModules(program);
  config["modules_to_save"] = saved.empty() ? Json() : Json(saved);
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace

std::string peftName(const std::string &name) {
  std::string own = ownName(name);
  const size_t part = partIn(own);
  if (part != std::string::npos && isMagnitude(own, part))
    own = own.substr(0, part) + magnitudePart;
  else if (part != std::string::npos)
    own = own.substr(0, part + std::strlen(".lora_A")) + ".weight";
  return prefix + own;
}

void checkPeft(const std::string &path, const Program &program) {
  std::set<std::string> known, names;
  for (int i = 0; i < program.adapterCount; ++i) {
    const Adapter &adapter = program.adapters[i];
    known.insert({adapter.first, adapter.second, adapter.magnitude ? adapter.magnitude : adapter.first});
    if (!adapter.magnitude != !program.adapters[0].magnitude)
      throw UsageError(text("--export ", path, ": '", adapter.first, "' and '", program.adapters[0].first, "' are of ",
                            "adapters with and without a magnitude, which a file of peft does not mix"));
  }
  bool any = false;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (variable.role != Role::Parameter)
      continue;
    const bool isPart = partIn(variable.name) != std::string::npos;
    any |= isPart;
    if (isPart && !known.count(variable.name))
      throw UsageError(text("--export ", path, ": '", variable.name,
                            "' is an adapter whose scale is not known, so that ",
                            "peft has no file for it; trained-only writes its tensor"));
    if (!names.insert(peftName(variable.name)).second)
      throw UsageError(text("--export ", path, ": '", variable.name, "' is of one of several adapters of one layer, ",
                            "of which a file of peft holds one; trained-only writes all"));
  }
  if (!any)
    throw UsageError(text("--export ", path,
                          ": peft is for programs that train adapters (lora_A, lora_B), and this one ",
                          "trains none: sluicec --adapter adds some"));
}

void writePeftConfig(const std::string &weights, const Program &program) {
  const std::string path = std::filesystem::path(weights).parent_path() / "adapter_config.json",
                    bytes = configOf(program);
  OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

} // namespace sluice
