// SPDX-License-Identifier: Apache-2.0
// Beside which nodes of a graph --adapter can put adapters: MatMul and Gemm nodes whose second factor is an
// initializer, as it lies or transposed, and Conv nodes. No MLIR in here.
#ifndef SLUICE_FRONTEND_ADAPTER_LAYERS_H
#define SLUICE_FRONTEND_ADAPTER_LAYERS_H

#include "frontend/NamePatterns.h"
#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice {

/// A product of rows with a matrix of the file, or a convolution with its weights [outputs, ...].
struct Layer {
  std::string weight;
  int64_t inputs, outputs;
  bool turned = false;              ///< the matrix is [outputs, inputs]
  std::vector<int64_t> window = {}; ///< of a convolution: the extents of its weights but the first, `inputs` in all
  int64_t groups = 1;

  /// Of a number for each output, as PEFT has them: [outputs], or [1, outputs, 1, ...] beside images.
  std::vector<int64_t> magnitudeShape() const {
    std::vector<int64_t> shape(window.empty() ? 1 : window.size() + 1, 1);
    shape[window.empty() ? 0 : 1] = outputs;
    return shape;
  }
};

/// The layers of a graph, and which of them are asked for. Refers to what it is given.
class Layers {
public:
  Layers(const OnnxFile &file, const AdapterRequest &request, const NamePatterns &targets);

  /// The layer that the node is, where it is one that is asked for.
  std::optional<Layer> targetOf(const onnx::NodeProto &node) const;

private:
  std::optional<Layer> layerOf(const onnx::NodeProto &node) const;
  std::optional<Layer> convolutionOf(const onnx::NodeProto &node) const;
  bool isTarget(const Layer &layer, const onnx::NodeProto &node) const;
  bool endsTheModel(std::string value) const;

  const OnnxFile &file;
  const AdapterRequest &request;
  const NamePatterns &targets;
  std::set<std::string> initializers; ///< of the file
  std::set<std::string> outputs;      ///< of the graph
  std::map<std::string, const onnx::NodeProto *> makers;
  std::map<std::string, std::vector<const onnx::NodeProto *>> readers; ///< those of bodies, too
};

} // namespace sluice

#endif
