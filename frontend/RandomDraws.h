// SPDX-License-Identifier: Apache-2.0
// Which products of a graph drop activations at random, by the nodes alone: what a trained model has no use for.
#ifndef SLUICE_FRONTEND_RANDOM_DRAWS_H
#define SLUICE_FRONTEND_RANDOM_DRAWS_H

#include "onnx/onnx_pb.h"

#include <map>
#include <set>
#include <string>

namespace sluice {

class RandomDraws {
public:
  explicit RandomDraws(const onnx::GraphProto &graph);
  /// The input of a product that the other one drops parts of; -1 for all other nodes.
  int droppedInput(const onnx::NodeProto &node) const;
  /// Of such a product: the constant that the other input is in the mean, "" where that is 1.
  const std::string &mean(const onnx::NodeProto &product) const;

private:
  std::string meanOf(const onnx::NodeProto &node) const;

  std::set<std::string> constants;          ///< tensors
  std::map<std::string, std::string> draws; ///< tensors, and the constants that they are in the mean; "": 1
};

} // namespace sluice

#endif
