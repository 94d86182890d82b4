// SPDX-License-Identifier: Apache-2.0
// Values of more dimensions than tensors have: views of windows and of maps of pairs of positions. Only what stands
// here makes and reads them; what is after it has fewer dimensions again.
#ifndef SLUICE_FRONTEND_TALL_TENSORS_H
#define SLUICE_FRONTEND_TALL_TENSORS_H

#include "frontend/NodeImport.h"

#include <optional>

namespace sluice {

/// More dimensions than --limit rank=N.
bool isTall(NodeImport &node, size_t rank);

/// Whether nodes of an op read tall values.
bool readsTall(const std::string &opType);

/// x in a shape, of as many elements, that may be tall, unless it is the model's output. Null after an error.
mlir::Value viewed(NodeImport &node, mlir::Value x, llvm::ArrayRef<int64_t> shape);

/// Two operands of which one is tall, with neighbouring dimensions as one where the same operands have more than one
/// element in them.
struct MergedOperands {
  mlir::Value a, b;
  llvm::SmallVector<int64_t> shape; ///< of the result, broadcast and tall
};

/// Empty after an error: they do not broadcast, or have too many dimensions all the same.
std::optional<MergedOperands> mergeOperands(NodeImport &node, mlir::Value a, mlir::Value b);

} // namespace sluice

#endif
