// SPDX-License-Identifier: Apache-2.0
// How nodes that bring weights of 8 or 4 bits lay them out. No MLIR in here.
#ifndef SLUICE_FRONTEND_STORED_LAYOUTS_H
#define SLUICE_FRONTEND_STORED_LAYOUTS_H

#include "frontend/OnnxFile.h"
#include "frontend/StoredMatrix.h"
#include "runtime/Result.h"
#include <initializer_list>
#include <optional>
#include <string>

namespace onnx {
class NodeProto;
}

namespace sluice {

/// A tensor of the file, as a node reads it, and its name.
struct StoredPart {
  std::string name;
  FileTensor tensor;

  /// "'w' of uint8 [4, 8]", for messages.
  std::string text() const;
  int64_t size() const;
  bool is(std::initializer_list<int32_t> types) const;
};

/// Weights with their scales and, where the node has them, zero points.
struct StoredParts {
  StoredPart codes, scales;
  std::optional<StoredPart> zeros;
};

/// What the parts mean to a node; the error says what does not fit, with both sides. Not checked yet is that the
/// numbers are finite: StoredMatrix::check.
/// DequantizeLinear of a matrix [rows, columns], with scales for all, for each row or column, or for blocks of one.
Result<StoredMatrix> dequantizedMatrix(const onnx::NodeProto &node, const StoredParts &parts);
/// MatMulNBits: the matrix [N, K] of y = x W^T, in blocks of a row.
Result<StoredMatrix> productMatrix(const onnx::NodeProto &node, const StoredParts &parts);
/// GatherBlockQuantized: the matrix [rows, columns] that it gathers from, in blocks of a row or column.
Result<StoredMatrix> gatheredMatrix(const onnx::NodeProto &node, const StoredParts &parts);

} // namespace sluice

#endif
