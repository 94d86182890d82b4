// SPDX-License-Identifier: Apache-2.0
// Which products of a graph drop activations at random, by the nodes alone: what a trained model has no use for. All
// other random numbers are part of the model.
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
  /// Whether the tensor is a draw on its way to a mask: uniform numbers that one comparison, or a sum that is rounded
  /// down, reads, or what became of these by constants alone.
  bool isDraw(const std::string &name) const { return draws.count(name) != 0; }
  /// The input of a product that the other one drops parts of, and is scaled for; -1 for all other nodes.
  int droppedInput(const onnx::NodeProto &node) const;
  /// Of such a product: the constant that the other input is in the mean, "" where that is 1.
  const std::string &mean(const onnx::NodeProto &product) const;

private:
  enum class Stage { Uniform, Sum, Mask, Dropping };
  /// How far a draw has come on its way to a mask.
  struct Draw {
    Stage stage;
    std::string mean; ///< of a mask that rounding down made; "": 1
  };
  bool start(const onnx::NodeProto &node);
  void goOn(const onnx::NodeProto &node);

  std::set<std::string> constants; ///< tensors
  std::map<std::string, Draw> draws;
  std::map<std::string, std::string> onlyReader; ///< of tensors that one node reads once: its op; "" for others
};

} // namespace sluice

#endif
