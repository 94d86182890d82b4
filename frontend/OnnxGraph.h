// SPDX-License-Identifier: Apache-2.0
// The part of the graph that the trained outputs depend on, in the file's (topological) order. No MLIR in here.
#ifndef SLUICE_FRONTEND_ONNX_GRAPH_H
#define SLUICE_FRONTEND_ONNX_GRAPH_H

#include "frontend/BatchNormForms.h"
#include "frontend/InputShapes.h"
#include "frontend/OnnxFile.h"
#include "frontend/TensorRoles.h"
#include "frontend/TrainingSpec.h"
#include <map>
#include <set>
#include <vector>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace sluice {

/// Whether the node's op is one of the standard's.
bool isStandard(const onnx::NodeProto &node);
/// Ops that hand on a tensor's elements in another shape or order.
bool isView(const onnx::NodeProto &node);

/// A value that a loss is attached to, or the model's own loss.
struct GraphOutput {
  std::string name;
  std::vector<int64_t> shape; ///< as declared, -1 where open; meaningful when isDeclared
  bool isDeclared = false;
  int64_t batchDim = 0; ///< as GraphInput::batchDim
};

/// The part of a model that is trained, and what was decided about it before nodes are imported. Refers to the file.
struct OnnxGraph {
  std::vector<const onnx::NodeProto *> nodes; ///< live, producers first
  std::vector<GraphInput> inputs;             ///< live, without initializers
  std::vector<GraphOutput> outputs;           ///< what is trained, one or several, each once
  std::vector<std::string> otherOutputs;      ///< of the model
  /// What more it takes to compute otherOutputs from the inputs and weights that trained outputs need, in order.
  std::vector<const onnx::NodeProto *> otherNodes;
  /// A fixed batch of the file that --batch replaces: Reshape nodes may hold it as a literal. 0 when there is none.
  int64_t replacedBatch = 0;
  int64_t batch = 0; ///< samples of a batch
  /// In a file that PyTorch did not write, no float tensor of rank 2 or more that is trained stands at a weight operand
  /// or is made into one (ONNX's light_* models, some of which keep their short vectors): outputs of ConstantOfShape,
  /// and of Constant, that stand at weight operands are parameters.
  bool constantsAreWeights = false;
  BatchNormForms batchNorms;
  std::vector<std::string> remarks;                                  ///< of what was decided by names, a line each
  std::map<std::string, std::vector<std::string>, std::less<>> tied; ///< other names of initializers (TiedNames.h)
  TensorRoles roles;                                                 ///< of the float tensors that live nodes read
  /// The first live node that reads a value, and as which input.
  std::map<std::string, std::pair<const onnx::NodeProto *, int>> firstReader;
  std::set<std::string> readTwice; ///< values that live nodes read more than once

  /// Null where `name` is no output that is trained.
  const GraphOutput *output(const std::string &name) const;
  /// "output 'y'", "outputs 'y', 'z'" of those that are trained.
  std::string outputNames() const;
  /// The first reader of `name` after Identity, Transpose, Reshape and the like; null when there is none.
  std::pair<const onnx::NodeProto *, int> readerBehindViews(const std::string &name) const;

  /// Errors lack the file's path; they name the flags that would help.
  static Result<OnnxGraph> build(const OnnxFile &file, const TrainingSpec &spec);
  /// What of a graph of several turns one of them computes, with the inputs and roles of all. `turn`: specOfTurn().
  OnnxGraph ofTurn(const OnnxFile &file, const TrainingSpec &turn) const;
};

} // namespace sluice

#endif
