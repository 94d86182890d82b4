// SPDX-License-Identifier: Apache-2.0
// Who makes and who reads the values of a graph's live nodes. No MLIR in here.
#ifndef SLUICE_FRONTEND_GRAPH_READS_H
#define SLUICE_FRONTEND_GRAPH_READS_H

#include "frontend/OnnxGraph.h"
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice {

/// A node, and as which input it reads a value.
using Read = std::pair<const onnx::NodeProto *, int>;

/// Whether the node is one of these ops of the standard.
bool isOp(const onnx::NodeProto &node, std::initializer_list<const char *> ops);

/// The graph must outlive it.
class GraphReads {
public:
  explicit GraphReads(const OnnxGraph &graph);
  /// The node that makes a value; null for inputs and initializers.
  const onnx::NodeProto *producerOf(const std::string &name) const;
  /// The nodes that read a value as it is.
  const std::vector<Read> &directReadsOf(const std::string &name) const;
  /// What reads a value after views and Expand; views that are the graph's output read nothing.
  std::vector<Read> readsOf(const std::string &name) const;

private:
  std::unordered_map<std::string, std::vector<Read>> readers;
  std::unordered_map<std::string, const onnx::NodeProto *> producers;
};

/// Factors of a model's own loss: the loss is linear in them, so that by gradients they could only shrink.
class LossFactors {
public:
  LossFactors(const OnnxGraph &graph, const GraphReads &reads);
  /// Whether a tensor that is read like this weighs terms of the loss: logarithms, squares or distances.
  bool areRead(const std::vector<Read> &tensorReads) const;

private:
  bool isLossTerm(const std::string &value) const;

  const GraphReads &reads;
  std::set<std::string> linear; ///< values in which the loss is linear
};

/// Whether a constant exponent makes a power a root, or the reciprocal of something.
bool takesRoot(const onnx::NodeProto &power, const OnnxFile &file);

} // namespace sluice

#endif
