// SPDX-License-Identifier: Apache-2.0
// The part of the graph that the first output needs, in the file's (topological) order, and the shapes of the inputs
// that it reads. No MLIR in here.
#ifndef SLUICE_FRONTEND_ONNX_GRAPH_H
#define SLUICE_FRONTEND_ONNX_GRAPH_H

#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"
#include <map>
#include <set>
#include <vector>

namespace onnx {
class NodeProto;
class ValueInfoProto;
} // namespace onnx

namespace sluice {

/// Whether the node's op is one of the standard's.
bool isStandard(const onnx::NodeProto &node);
/// Ops that hand on a tensor's elements in another shape or order.
bool isView(const onnx::NodeProto &node);

struct GraphInput {
  std::string name;
  int32_t elementType;
  std::vector<int64_t> shape;
};

struct OnnxGraph {
  std::vector<const onnx::NodeProto *> nodes; ///< live, producers first
  std::vector<GraphInput> inputs;             ///< live, without initializers
  std::string output;                         ///< the model's first output
  std::vector<int64_t> outputShape;           ///< as declared, -1 where open; meaningful when outputDeclared
  bool outputDeclared = false;
  /// A fixed batch of the file that --batch replaces: Reshape nodes may hold it as a literal. 0 when there is none.
  int64_t replacedBatch = 0;
  int64_t batch = 0; ///< first dimension of the first input, 0 for scalars
  /// No float initializer of rank 2 or more stands at a weight operand (ONNX's light_* models, some of which keep their
  /// short vectors): outputs of Constant and ConstantOfShape that stand at weight operands are parameters.
  bool constantsAreWeights = false;
  /// Float initializers that are no weights, whatever reads them: those that reach comparisons and conditions alone,
  /// and, in files of PyTorch's exporter by torch.export, which mark parameters, buffers and single numbers.
  std::set<std::string> fixedInitializers;
  /// The first live node that reads a value, and as which input.
  std::map<std::string, std::pair<const onnx::NodeProto *, int>> firstReader;
  std::set<std::string> readTwice; ///< values that live nodes read more than once

  /// The first reader of `name` behind Identity, Transpose, Reshape and the like; null when there is none.
  std::pair<const onnx::NodeProto *, int> readerBehindViews(const std::string &name) const;

  static Result<OnnxGraph> build(const OnnxFile &file, const TrainingSpec &spec);
};

} // namespace sluice

#endif
