// SPDX-License-Identifier: Apache-2.0
// Errors name what is wrong; files are untrusted.
#include "frontend/GraphNames.h"

#include "onnx/onnx_pb.h"
#include "llvm/Support/JSON.h"

#include <set>
#include <string>

namespace sluice {

/// What the checker leaves: names that nothing defines at the end of the graph, and names defined twice by
/// initializers.
Status checkNames(const onnx::GraphProto &graph) {
  std::set<std::string> defined;
  for (const auto &initializer : graph.initializer())
    if (!defined.insert(initializer.name()).second)
      return Error{"initializer '" + initializer.name() + "' is defined twice"};
  if (graph.sparse_initializer_size() > 0)
    return Error{"initializer '" + graph.sparse_initializer(0).values().name() + "' is sparse, which is not supported"};
  for (const auto &input : graph.input())
    defined.insert(input.name());
  for (const auto &node : graph.node())
    defined.insert(node.output().begin(), node.output().end());
  if (graph.output_size() == 0)
    return Error{"the model's graph has no outputs"};
  for (const auto &output : graph.output())
    if (!defined.count(output.name()))
      return Error{"graph output '" + output.name() + "' is produced by no node"};
  return Success{};
}

/// Names become strings of programs, and keys of files that hold UTF-8: of safetensors, of logs and traces.
static Status checkName(const char *what, const std::string &name) {
  if (!llvm::json::isUTF8(name) || name.find('\0') != std::string::npos)
    return Error{std::string(what) + " '" + name + "' has a name that is no UTF-8 or holds a zero byte; rename it"};
  if (name == "__metadata__") // what safetensors files call their own
    return Error{std::string(what) + " '" + name + "' has a name that safetensors files reserve; rename it"};
  return Success{};
}

Status checkText(const onnx::GraphProto &graph) {
  for (const auto &initializer : graph.initializer())
    if (Status named = checkName("initializer", initializer.name()); !named)
      return named;
  for (const auto *list : {&graph.input(), &graph.output()})
    for (const auto &value : *list)
      if (Status named = checkName("value", value.name()); !named)
        return named;
  for (const auto &node : graph.node()) {
    if (Status named = checkName("node", node.name()); !named)
      return named;
    for (const std::string &output : node.output())
      if (Status named = checkName("value", output); !named)
        return named;
  }
  return Success{};
}

} // namespace sluice
