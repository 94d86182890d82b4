// SPDX-License-Identifier: Apache-2.0
// Two maps over the live nodes.
#include "frontend/GraphReads.h"

#include "onnx/onnx_pb.h"

#include <algorithm>

namespace sluice {

/// Of one value, after all views.
static constexpr size_t mostReads = 1000;

bool isOp(const onnx::NodeProto &node, std::initializer_list<const char *> ops) {
  return isStandard(node) && std::any_of(ops.begin(), ops.end(), [&](const char *op) { return node.op_type() == op; });
}

/// Of live nodes alone: who reads a tensor that nothing else needs says nothing about it.
GraphReads::GraphReads(const OnnxGraph &graph) {
  for (const onnx::NodeProto *node : graph.nodes) {
    for (int i = 0; i < node->input_size(); ++i)
      if (!node->input(i).empty())
        readers[node->input(i)].push_back({node, i});
    for (const std::string &output : node->output())
      producers[output] = node;
  }
}

const onnx::NodeProto *GraphReads::producerOf(const std::string &name) const {
  auto found = producers.find(name);
  return found == producers.end() ? nullptr : found->second;
}

const std::vector<Read> &GraphReads::directReadsOf(const std::string &name) const {
  static const std::vector<Read> none;
  auto found = readers.find(name);
  return found == readers.end() ? none : found->second;
}

/// Whoever reads a view or an expanded copy reads the tensor. Limited, as a constant may have a reader in each layer
/// and views multiply them; rules that look at all readers then see the first ones.
std::vector<Read> GraphReads::readsOf(const std::string &name) const {
  std::vector<Read> reads;
  std::vector<const std::string *> open = {&name};
  for (size_t at = 0; at < open.size() && at < mostReads; ++at)
    for (const Read &read : directReadsOf(*open[at])) {
      const auto &[node, input] = read;
      const bool isMoved = isView(*node) || (isOp(*node, {"Expand"}) && node->output_size() == 1);
      if (isMoved && input == 0)
        open.push_back(&node->output(0));
      else if (reads.size() < mostReads)
        reads.push_back(read);
    }
  return reads;
}

} // namespace sluice
