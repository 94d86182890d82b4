// SPDX-License-Identifier: Apache-2.0
// Turns indices that are data into ids in a flattened tensor, for kernels. Indices are compared with the extents that
// they count along, negative ones from the end; one that lies outside is the id -1, with which kernels end a step.
// Where all indices count along one extent, programs compare those of an input with it, from 0 on, when they read data.
#ifndef SLUICE_FRONTEND_DATA_POSITIONS_H
#define SLUICE_FRONTEND_DATA_POSITIONS_H

#include "frontend/Compositions.h"

namespace sluice {

/// ScatterElements: the elements of a tensor of `shape` that the node's input 1 names along `axis`, ids [count]. Null
/// after an error.
mlir::Value elementsByData(NodeImport &node, llvm::ArrayRef<int64_t> shape, int64_t axis);

/// GatherND and ScatterND, as IndexedBlocks says it of constants.
struct BlocksByData {
  mlir::Value ids;            ///< [count], each in [0, blocks)
  int64_t blocks, size;       ///< in all of the tensor; elements of one
  std::vector<int64_t> shape; ///< of all that is named
};
/// By the node's input 1. Nothing after an error.
std::optional<BlocksByData> blocksByData(NodeImport &node, llvm::ArrayRef<int64_t> shape, int64_t batchDims);

} // namespace sluice

#endif
