// SPDX-License-Identifier: Apache-2.0
// What inlining would make of a model, counted without doing it: nodes, bytes and depth of every function, callees
// first.
#include "frontend/LocalFunctions.h"
#include "frontend/NodeWalk.h"
#include "onnx/common/proto_util.h"
#include "onnx/onnx_pb.h"
#include <algorithm>
#include <map>

namespace sluice {
namespace {

/// Calls within calls; exporters nest a few levels.
constexpr int deepestCall = 100;
/// Bodies are copied for each call, with the names of the caller in them.
constexpr int64_t mostBytes = int64_t(1) << 30;
/// What counts run into; products of two of them do not overflow.
constexpr int64_t most = int64_t(1) << 31;

/// What inlining makes of a function: nodes, bytes, and calls within calls.
struct Size {
  int64_t nodes = 0, bytes = 0, depth = 0;
};

void add(int64_t &sum, int64_t more) { sum = std::min(most, sum + std::min(most, more)); }

std::string text(const onnx::FunctionProto &function) {
  return "function '" + function.domain() + "." + function.name() + "'";
}

/// Counts nodes and bytes of the model once all functions are inlined, before that is done: functions that call others
/// twice each grow as 2^depth, so that a small file could take all memory. Sizes are sums that stop at a largest
/// number, and each function is measured once, in time of the file's length.
class Expansion {
public:
  Expansion(const onnx::ModelProto &model, const Limits &limits) : model(model), limits(limits) {}

  /// Nodes of the file come first, as they bound what measuring takes.
  Status check() {
    forEachNode(model.graph().node(), [&](const onnx::NodeProto &node) { noteNode(node); });
    for (const onnx::FunctionProto &function : model.functions()) {
      forEachNode(function.node(), [&](const onnx::NodeProto &node) { noteNode(node); });
      if (Status named = declare(function); !named)
        return named;
    }
    if (nodes > limits.nodes)
      return Error{"the model " + overLimit(std::to_string(nodes) + " nodes", limits.nodes, "nodes")};
    for (const onnx::FunctionProto &function : model.functions())
      if (Status sized = measure(function, 1); !sized)
        return sized;
    return checkInlined();
  }

private:
  Status checkInlined() {
    Size whole;
    if (Status sized = sum(model.graph().node(), 0, whole); !sized)
      return sized;
    if (whole.nodes > limits.inlinedNodes)
      return Error{"with its functions inlined the model " +
                   overLimit((whole.nodes == most ? "at least " : "") + std::to_string(whole.nodes) + " nodes",
                             limits.inlinedNodes, "inlined-nodes")};
    if (whole.bytes > mostBytes)
      return Error{"its functions, inlined, have at least " + std::to_string(whole.bytes) + " bytes, more than " +
                   std::to_string(mostBytes)};
    return Success{};
  }

  void noteNode(const onnx::NodeProto &node) {
    ++nodes;
    for (const auto *names : {&node.input(), &node.output()})
      for (const std::string &name : *names)
        longestName = std::max<int64_t>(longestName, name.size());
  }

  Status declare(const onnx::FunctionProto &function) {
    if (function.domain().empty() || function.domain() == "ai.onnx")
      return Error{text(function) + " is in the domain of the standard ops; it needs one of its own"};
    if (!functions.emplace(onnx::GetFunctionImplId(function), &function).second)
      return Error{text(function) + " is defined twice"};
    return Success{};
  }

  /// Size of the function once everything is inlined into it.
  Status measure(const onnx::FunctionProto &function, int depth) {
    auto [entry, first] = sizes.try_emplace(&function);
    if (!first)
      return entry->second.depth ? Status(Success{}) : Status(Error{text(function) + " calls itself"});
    Size size;
    add(size.bytes, function.ByteSizeLong());
    if (depth <= deepestCall)
      if (Status summed = sum(function.node(), depth, size); !summed)
        return summed;
    if (depth > deepestCall || ++size.depth > deepestCall)
      return Error{text(function) + " nests calls more than " + std::to_string(deepestCall) + " deep"};
    entry->second = size;
    return Success{};
  }

  template <typename Nodes> Status sum(const Nodes &list, int depth, Size &size) {
    Status status = Success{};
    forEachNode(list, [&](const onnx::NodeProto &node) {
      if (!status)
        return;
      auto callee = functions.find(onnx::GetCalleeId(node)); // as the inliner finds it
      if (callee == functions.end()) {
        add(size.nodes, 1);
        add(size.bytes, (node.input_size() + node.output_size()) * longestName);
        return;
      }
      status = measure(*callee->second, depth + 1);
      Size called = sizes[callee->second];
      add(size.nodes, called.nodes);
      add(size.bytes, called.bytes);
      size.depth = std::max(size.depth, called.depth);
    });
    return status;
  }

  const onnx::ModelProto &model;
  const Limits &limits;
  int64_t nodes = 0, longestName = 0;
  std::map<std::string, const onnx::FunctionProto *> functions; ///< by the inliner's id
  std::map<const onnx::FunctionProto *, Size> sizes;            ///< depth 0: under way
};

} // namespace

Status checkFunctions(const onnx::ModelProto &model, const Limits &limits) { return Expansion(model, limits).check(); }

} // namespace sluice
