// SPDX-License-Identifier: Apache-2.0
// What of a model is not supported, told at once: nodes in groups of one op and one reason.
#ifndef SLUICE_FRONTEND_REFUSALS_H
#define SLUICE_FRONTEND_REFUSALS_H

#include "onnx/onnx_pb.h"
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

class Refusals {
public:
  /// `nodes`: how many of the model's are looked at.
  Refusals(int64_t opset, int64_t nodes) : opset(opset), nodes(nodes) {}

  void add(const onnx::NodeProto &node, const std::string &reason);
  /// A node that cannot be judged: what it reads is known too little after a refused one.
  void skip() { ++skipped; }
  bool empty() const { return refused == 0; }

  /// A single refused node with its reason; of several how many they are.
  std::string message() const;
  /// For each of the first groups its first node, how many there are, the reason and a way out; then what is left out.
  std::vector<std::string> notes() const;

private:
  /// Refused nodes of one op, for one reason.
  struct Group {
    std::string first; ///< node, op, opset
    std::string reason;
    int64_t nodes = 0;
  };

  int64_t opset, nodes;
  int64_t refused = 0, unlisted = 0, skipped = 0; ///< nodes
  std::vector<Group> groups;                      ///< by their first nodes
  /// Of op and reason without names and numbers, the index among the groups.
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::set<std::string> ops;
};

/// "1 node", "2 nodes".
std::string counted(int64_t count, const char *what);

/// The refusal of the first node that ONNX's own domain has no op for; nothing: it has one for all.
std::optional<std::string> unknownOp(const onnx::GraphProto &graph, int64_t opset);

/// What to do about a node that has no importer, as the end of a sentence.
std::string adviceOn(const onnx::NodeProto &node);

} // namespace sluice

#endif
