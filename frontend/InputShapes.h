// SPDX-License-Identifier: Apache-2.0
// Shapes of the inputs that live nodes read, with --batch and --dim applied, and which of their dimensions counts the
// samples. No MLIR in here.
#ifndef SLUICE_FRONTEND_INPUT_SHAPES_H
#define SLUICE_FRONTEND_INPUT_SHAPES_H

#include "frontend/TrainingSpec.h"
#include <cstdint>
#include <string>
#include <vector>

namespace onnx {
class GraphProto;
class ValueInfoProto;
} // namespace onnx

namespace sluice {

struct OnnxGraph;

/// An input of the graph whose shape is known.
struct GraphInput {
  std::string name;
  int32_t elementType;
  std::vector<int64_t> shape; ///< as nodes read it
  /// The dimension that counts the samples, or noBatch: a sample is the whole input, and a batch one sample.
  int64_t batchDim = 0;
  bool shared = false; ///< all samples have it in common; batchDim means nothing

  /// As programs take it: the batch as first dimension, but of shared inputs `shape` itself.
  std::vector<int64_t> programShape() const;
};

/// The permutation that brings dimension `batchDim` to the front and leaves the others in order.
std::vector<int64_t> batchToFront(int64_t rank, int64_t batchDim);

/// Fills `graph.inputs`, `batch`, `replacedBatch` and the outputs' batchDim, and says in `graph.remarks` which
/// dimensions were found to be the batch by their names. `inputs`: those of the file that live nodes read. `model`
/// declares the outputs.
Status findInputShapes(const std::vector<const onnx::ValueInfoProto *> &inputs, const onnx::GraphProto &model,
                       const TrainingSpec &spec, OnnxGraph &graph);

} // namespace sluice

#endif
