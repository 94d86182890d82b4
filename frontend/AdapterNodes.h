// SPDX-License-Identifier: Apache-2.0
// The nodes that --adapter puts beside a layer. No MLIR in here.
#ifndef SLUICE_FRONTEND_ADAPTER_NODES_H
#define SLUICE_FRONTEND_ADAPTER_NODES_H

#include "frontend/AdapterLayers.h"
#include "onnx/onnx_pb.h"
#include <set>
#include <string>
#include <vector>

namespace sluice {

/// Names of a layer's adapter, as PEFT has them: of NAME.weight they are NAME.lora_A.weight and so on.
struct AdapterTensors {
  explicit AdapterTensors(const Layer &layer);
  std::string first, second, magnitude;
};

/// Puts nodes at the end of a list. What stands beside a layer comes right behind it, so that the graph's order stays
/// topological.
class AdapterNodes {
public:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  /// Keeps references. `names` are those of the model, which new ones join.
  AdapterNodes(const AdapterRequest &request, int64_t opset, std::set<std::string> &names, Nodes &nodes)
      : request(request), opset(opset), names(names), nodes(nodes) {}

  /// The layer's node, and its adapter behind it, see insertAdapters().
  void stand(const Layer &layer, const onnx::NodeProto &node);
  /// Results of Identity nodes that no gradient passes.
  const std::set<std::string> &detached() const { return fixed; }

private:
  void standWithMagnitude(const Layer &layer, const onnx::NodeProto &node);
  std::string besideRows(const Layer &layer, const std::string &x, const std::string &scope);
  std::string besideImages(const Layer &layer, const onnx::NodeProto &node, const std::string &x,
                           const std::string &scope);
  std::string convolved(const onnx::NodeProto &node, const std::string &x, const std::string &weight,
                        const std::string &name);
  std::string delta(const Layer &layer, const std::string &scope);
  std::string lengths(const Layer &layer, const std::string &scope);
  std::string dropped(const std::string &x, const std::string &scope);
  double scale() const;

  std::string fresh(std::string name);
  onnx::NodeProto &last() { return nodes[nodes.size() - 1]; }
  std::string nodeResult(const char *type, const std::vector<std::string> &inputs, const std::string &name);
  std::string transposed(const std::string &matrix, const std::string &name);
  std::string constantNode(const std::string &name, int32_t type, const std::string &bytes,
                           const std::vector<int64_t> &shape = {});
  std::string integersNode(const std::string &name, const std::vector<int64_t> &values);
  std::string reshaped(const std::string &x, const std::vector<int64_t> &shape, const std::string &name);
  std::string floatNode(const std::string &name, double value);
  void finish(const char *op, const std::vector<std::string> &inputs, const std::string &name,
              const std::string &result);

  const AdapterRequest &request;
  const int64_t opset;
  std::set<std::string> &names; ///< of all values and tensors
  Nodes &nodes;
  std::set<std::string> fixed;
};

} // namespace sluice

#endif
