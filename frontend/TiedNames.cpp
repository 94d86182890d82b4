// SPDX-License-Identifier: Apache-2.0
// Modules of nodes first, then what of other modules reads each parameter.
#include "frontend/TiedNames.h"

#include "frontend/OnnxGraph.h"
#include "onnx/onnx_pb.h"
#include "re2/re2.h"

#include <algorithm>
#include <optional>

namespace sluice {
namespace {

/// Where a node comes from.
struct Module {
  std::string path;            ///< as named_modules() has it
  std::optional<bool> isLayer; ///< its class is one with a weight of its own; nothing: not known
};

/// The texts of a Python list of strings as its repr writes it: ['', 'layer1', 'layer1.0'].
std::vector<std::string> listOf(const std::string &repr) {
  std::vector<std::string> list;
  for (size_t at = 0; (at = repr.find_first_of("'\"", at)) != std::string::npos; ++at) {
    const size_t end = repr.find(repr[at], at + 1);
    if (end == std::string::npos)
      break;
    list.push_back(repr.substr(at + 1, end - at - 1));
    at = end;
  }
  return list;
}

/// Whether modules of the class own the weight that the op reads: those of torch.nn, and embeddings that others derive
/// from torch.nn's, as transformers its scaled ones.
bool ownsWeight(const std::string &type, const std::string &op) {
  static const re2::RE2 layer("torch\\.nn\\.modules\\.(linear|conv|sparse|batchnorm|normalization|instancenorm)\\..*"),
      embedding(".*Embedding");
  return re2::RE2::FullMatch(type, layer) || (op == "aten.embedding.default" && re2::RE2::FullMatch(type, embedding));
}

/// The last but one of scopes and classes: the module that the op stands in.
std::optional<Module> moduleByTorchExport(const onnx::NodeProto &node) {
  std::vector<std::string> scopes, classes;
  for (const auto &entry : node.metadata_props())
    if (entry.key() == "pkg.torch.onnx.name_scopes")
      scopes = listOf(entry.value());
    else if (entry.key() == "pkg.torch.onnx.class_hierarchy")
      classes = listOf(entry.value());
  if (scopes.size() < 2 || classes.size() != scopes.size())
    return std::nullopt;
  return Module{scopes[scopes.size() - 2], ownsWeight(classes[classes.size() - 2], classes.back())};
}

/// `/layer1/layer1.0/conv1/Conv` is of layer1.0.conv1: what a container holds has the container's name before its own.
std::optional<Module> moduleByName(const onnx::NodeProto &node) {
  const std::string &name = node.name();
  if (name.empty() || name[0] != '/')
    return std::nullopt;
  std::vector<std::string> parts;
  size_t begin = 1;
  for (size_t end; (end = name.find('/', begin)) != std::string::npos; begin = end + 1) {
    const std::string part = name.substr(begin, end - begin);
    if (!parts.empty() && part.compare(0, parts.back().size() + 1, parts.back() + ".") == 0)
      parts.back() = part;
    else
      parts.push_back(part);
  }
  std::string path;
  for (const std::string &part : parts)
    path += (path.empty() ? "" : ".") + part;
  return path.empty() ? std::nullopt : std::optional(Module{path, std::nullopt});
}

std::optional<Module> moduleOf(const onnx::NodeProto &node) {
  std::optional<Module> module = moduleByTorchExport(node);
  return module ? module : moduleByName(node);
}

/// Ops that the layers consist of by the legacy exporter.
bool isOfLayer(const onnx::NodeProto &node) {
  static const std::set<std::string> ops = {"Add",      "BatchNormalization", "Cast",   "Constant",
                                            "Conv",     "ConvTranspose",      "Gather", "Gemm",
                                            "Identity", "LayerNormalization", "MatMul", "Transpose"};
  return isStandard(node) && ops.count(node.op_type());
}

bool isWithin(const std::string &path, const std::string &module) {
  return path.compare(0, module.size(), module) == 0 && (path.size() == module.size() || path[module.size()] == '.');
}

/// Whether `path` is `owner` without modules that are never called, as where enc.fc(x) is called and enc is not: the
/// legacy exporter names modules by the calls around them.
bool skipsModulesOf(const std::string &path, const std::string &owner) {
  size_t at = 0;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    for (bool found = false; !found;) {
      if (at > owner.size())
        return false;
      const size_t next = std::min(owner.find('.', at), owner.size());
      found = owner.compare(at, next - at, path, begin, end - begin) == 0;
      at = next + 1;
    }
    begin = end + 1;
  }
  return at > owner.size(); // the last one is the same
}

/// Looks for parameters that a layer reads which does not own them. Files hold such a weight once, while the framework
/// knows it by the name in each layer, which is therefore the path of the module plus the parameter's last word.
class Search {
public:
  Search(const onnx::GraphProto &proto, const OnnxGraph &graph) : graph(graph) {
    for (const auto &initializer : proto.initializer())
      own.insert(initializer.name());
    for (const onnx::NodeProto *node : graph.nodes)
      if (std::optional<Module> module = moduleOf(*node))
        modules.emplace_back(node, std::move(*module));
    const std::string prefix = missingPrefix();
    for (auto &[node, module] : modules) {
      module.path = prefix + module.path;
      auto [found, isFirst] = plain.emplace(module.path, true);
      found->second &= isOfLayer(*node);
    }
  }

  std::map<std::string, std::vector<std::string>> run() {
    for (const auto &[node, module] : modules)
      for (const std::string &input : node->input())
        if (isOfModule(input) && !graph.roles.held.count(input))
          add(input, module);
    for (auto &[parameter, names] : tied) // two weights in one layer are of neither
      names.erase(std::remove_if(names.begin(), names.end(), [&](const auto &name) { return owners[name].size() > 1; }),
                  names.end());
    return std::move(tied);
  }

private:
  bool isOfModule(const std::string &tensor) const {
    return own.count(tensor) && nameScheme(tensor) == NameScheme::Module;
  }

  /// What the paths of all modules lack in front, "base_model." where PEFT calls base_model.model past base_model: what
  /// every module that reads a parameter of its own lacks, and all parameters have.
  std::string missingPrefix() const {
    std::optional<std::string> prefix;
    for (const auto &[node, module] : modules)
      for (const std::string &input : node->input()) {
        const std::string owner = input.substr(0, std::min(input.rfind('.'), input.size()));
        if (!isOfModule(input) || owner.size() < module.path.size())
          continue;
        const std::string front = owner.substr(0, owner.size() - module.path.size());
        if (front + module.path != owner || (!front.empty() && front.back() != '.'))
          continue;
        if (front.empty() || (prefix && *prefix != front))
          return "";
        prefix = front;
      }
    const bool all = prefix && std::all_of(own.begin(), own.end(), [&](const std::string &name) {
                       return nameScheme(name) != NameScheme::Module || name.rfind(*prefix, 0) == 0;
                     });
    return all ? *prefix : "";
  }

  /// Left out: own parameters of the module, parameters of a module inside it, and names that a tensor of the file has.
  void add(const std::string &parameter, const Module &module) {
    const size_t dot = parameter.rfind('.');
    if (dot == std::string::npos)
      return;
    const std::string owner = parameter.substr(0, dot), leaf = parameter.substr(dot + 1),
                      name = module.path + "." + leaf;
    if (module.path == owner || (leaf != "weight" && leaf != "bias") || own.count(name) || isWithin(owner, module.path))
      return;
    if (!module.isLayer.value_or(looksLikeLayer(module.path, owner)))
      return;
    owners[name].insert(parameter);
    std::vector<std::string> &names = tied[parameter];
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }

  /// By names alone, which cannot tell whether a module of the outer one is the inner one, too. The legacy exporter
  /// calls a module's second use `NAME_1`.
  bool looksLikeLayer(const std::string &path, const std::string &owner) const {
    static const re2::RE2 again("(.*)_\\d+");
    auto found = plain.find(path);
    std::string base;
    const bool isNumbered = re2::RE2::FullMatch(path, again, &base);
    if (found == plain.end() || !found->second || skipsModulesOf(path, owner) ||
        (isNumbered && skipsModulesOf(base, owner)))
      return false;
    if (isNumbered && (base == owner || plain.count(base)))
      return false;
    auto next = plain.upper_bound(path + "."); // a module in it
    return next == plain.end() || !isWithin(next->first, path);
  }

  const OnnxGraph &graph;
  std::set<std::string> own;
  std::vector<std::pair<const onnx::NodeProto *, Module>> modules; ///< of nodes in their order
  std::map<std::string, bool> plain; ///< modules, and whether all of their nodes are a layer's
  std::map<std::string, std::vector<std::string>> tied;
  std::map<std::string, std::set<std::string>> owners; ///< parameters that would have a name
};

} // namespace

std::map<std::string, std::vector<std::string>> tiedNames(const onnx::GraphProto &proto, const OnnxGraph &graph) {
  return Search(proto, graph).run();
}

} // namespace sluice
