// SPDX-License-Identifier: Apache-2.0
// Nodes with those of the bodies that they hold. Parsing has limited how deep bodies nest.
#ifndef SLUICE_FRONTEND_NODE_WALK_H
#define SLUICE_FRONTEND_NODE_WALK_H

#include "onnx/onnx_pb.h"

namespace sluice {

/// Calls `visit` with every graph that is an attribute of the node.
template <typename Visit> void forEachBody(const onnx::NodeProto &node, const Visit &visit) {
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      visit(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      visit(graph);
  }
}

/// Calls `visit` with each node before those of its bodies.
template <typename Nodes, typename Visit> void forEachNode(const Nodes &nodes, const Visit &visit) {
  for (const onnx::NodeProto &node : nodes) {
    visit(node);
    forEachBody(node, [&](const onnx::GraphProto &body) { forEachNode(body.node(), visit); });
  }
}

} // namespace sluice

#endif
