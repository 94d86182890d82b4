// SPDX-License-Identifier: Apache-2.0
// Weights that a file holds in fewer bits, as matrices of floats whose values are known in that form. No MLIR in here.
#ifndef SLUICE_FRONTEND_STORED_FORMS_H
#define SLUICE_FRONTEND_STORED_FORMS_H

#include "frontend/TensorIndex.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace onnx {
class ModelProto;
class TensorProto;
} // namespace onnx

namespace sluice {

/// What readStoredForms leaves beside the graph.
struct StoredForms {
  std::map<std::string, std::string> refused; ///< why a node stayed as it was, by its first output
  /// Initializers that no node reads any more, whose bytes matrices refer to.
  std::vector<std::unique_ptr<onnx::TensorProto>> parts;
};

/// Takes apart the nodes of the graph that bring weights of 8 or 4 bits: DequantizeLinear of a matrix of the file, and
/// MatMulNBits and GatherBlockQuantized of ONNX Runtime. The matrix becomes a float32 initializer without data, of
/// which `tensors` knows a StoredMatrix; the node becomes Identity, MatMul or Gather of it. Nodes of bodies stay.
StoredForms readStoredForms(onnx::ModelProto &model, TensorIndex &tensors);

} // namespace sluice

#endif
