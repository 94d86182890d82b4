// SPDX-License-Identifier: Apache-2.0
// Groups of refused nodes. Files may hold any number of ops and names of any length: groups, and what is shown of each,
// are limited.
#include "frontend/Refusals.h"
#include "frontend/NodeImport.h"
#include "onnx/defs/schema.h"
#include "runtime/Printable.h"
#include <cctype>

namespace sluice {
namespace {

constexpr size_t mostGroups = 16;
constexpr size_t longestNode = 200, longestReason = 400; ///< bytes, as shown in a note

/// Nodes differ in names and numbers where the reason is the same.
std::string kindOf(const std::string &reason) {
  std::string kind;
  bool quoted = false;
  for (char c : reason) {
    quoted ^= c == '\'';
    if (!quoted && !std::isdigit(static_cast<unsigned char>(c)) && kind.size() < longestReason)
      kind += c;
  }
  return kind;
}

/// As a terminal may see it; names in the middle of a sentence may be longer than the sentence.
std::string shown(const std::string &text, size_t most) {
  const std::string clean = printable(text, std::string::npos);
  return clean.size() <= most ? clean : clean.substr(0, most / 2) + "..." + clean.substr(clean.size() - most / 2);
}

} // namespace

std::string counted(int64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// A model of a hundred layers refuses the same op a hundred times: equal ops with equal reasons, but for names and
/// numbers in them, are one group. Beyond mostGroups nodes are only counted.
void Refusals::add(const onnx::NodeProto &node, const std::string &reason) {
  ++refused;
  const std::string op = node.domain() + "." + node.op_type();
  ops.insert(op);
  auto [at, added] = known.emplace(std::pair(op, kindOf(reason)), groups.size());
  if (added && groups.size() == mostGroups) {
    known.erase(at);
    ++unlisted;
    return;
  }
  if (added)
    groups.push_back({describe(node, opset), reason});
  ++groups[at->second].nodes;
}

std::string Refusals::message() const {
  if (refused == 1)
    return groups[0].first + ": " + groups[0].reason;
  return counted(refused, "node") + " of " + std::to_string(nodes) + " cannot be imported, of " +
         counted(ops.size(), "op");
}

std::vector<std::string> Refusals::notes() const {
  std::vector<std::string> lines;
  for (const Group &group : groups)
    if (refused > 1)
      lines.push_back(shown(group.first, longestNode) +
                      (group.nodes > 1 ? " and " + std::to_string(group.nodes - 1) + " more" : "") + ": " +
                      shown(group.reason, longestReason));
  if (unlisted > 0)
    lines.push_back(counted(unlisted, "refused node") + " more, for other reasons than the " +
                    std::to_string(groups.size()) + " above");
  if (skipped > 0)
    lines.push_back(counted(skipped, "node") +
                    " behind these could not be looked at: of what they read, too little is known");
  return lines;
}

std::optional<std::string> unknownOp(const onnx::GraphProto &graph, int64_t opset) {
  for (const onnx::NodeProto &node : graph.node())
    if (isStandard(node) && !onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), ""))
      return describe(node, opset) + ": ONNX has no op of this name in this opset; " + adviceOn(node);
  return std::nullopt;
}

std::string adviceOn(const onnx::NodeProto &node) {
  struct Family {
    std::set<std::string> ops;
    const char *way;
  };
  static const Family families[] = {
      {{"DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"},
       "export the model before it is quantized"},
      {{"NonMaxSuppression", "TopK", "NonZero", "Unique", "RoiAlign", "ArgMax", "ArgMin"},
       "export the part of the model that is trained, without what selects among its results"},
      {{"Multinomial"}, "bring what it draws as an input"}};
  static const std::set<std::string> fusions = {"SimplifiedLayerNormalization", "SkipLayerNormalization",
                                                "SkipSimplifiedLayerNormalization", "BiasGelu", "FastGelu"};
  if (node.domain() == "com.microsoft" || node.domain() == "com.microsoft.nchwc" || fusions.count(node.op_type()))
    return "ONNX Runtime's optimizer fuses nodes to such ops; take the file from before it was optimized, or optimize "
           "with level basic alone";
  if (!isStandard(node))
    return "give the model a function of this name, which is inlined, or export it with ops of ONNX's own domain";
  for (const Family &family : families)
    if (family.ops.count(node.op_type()))
      return family.way;
  return "write it with ops that docs/reference/coverage.md lists";
}

} // namespace sluice
