// SPDX-License-Identifier: Apache-2.0
// Which products of a graph drop activations at random, by the nodes alone: what a trained model has no use for.
#ifndef SLUICE_FRONTEND_RANDOM_DRAWS_H
#define SLUICE_FRONTEND_RANDOM_DRAWS_H

#include "onnx/onnx_pb.h"

#include <set>
#include <string>

namespace sluice {

class RandomDraws {
public:
  explicit RandomDraws(const onnx::GraphProto &graph);
  /// The input of a product that the other one drops parts of; -1 for all other nodes.
  int droppedInput(const onnx::NodeProto &node) const;

private:
  std::set<std::string> constants, draws; ///< tensors
};

} // namespace sluice

#endif
