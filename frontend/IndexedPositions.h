// SPDX-License-Identifier: Apache-2.0
// What constant indices of ONNX's gathers and scatters name, as positions in a flattened tensor: by these constants are
// folded, and activations gathered.
#ifndef SLUICE_FRONTEND_INDEXED_POSITIONS_H
#define SLUICE_FRONTEND_INDEXED_POSITIONS_H

#include "frontend/HostTensor.h"
#include "runtime/Result.h"

namespace sluice {

/// GatherElements and ScatterElements: `index` has the rank of `shape` and, but along `axis`, no larger extents; it
/// names the position along `axis`, negative ones counted from the end. One position in [0, elements) for each index.
Result<HostTensor> elementPositions(const std::vector<int64_t> &shape, const HostTensor &index, int64_t axis);

/// GatherND and ScatterND: after its first `batchDims` dimensions, which are those of `shape`, `index` holds tuples of
/// positions along the next dimensions, as many as its last extent; they name blocks of what is after these.
struct IndexedBlocks {
  HostTensor positions;       ///< [tuples], each in [0, blocks)
  int64_t blocks = 1;         ///< in all of the tensor
  int64_t size = 1;           ///< elements of one
  std::vector<int64_t> shape; ///< of all that is named: index's without its last extent, then a block's
};
/// An error where shapes do not fit, an index lies outside, or the tuples are too many to fold.
Result<IndexedBlocks> blockPositions(const std::vector<int64_t> &shape, const HostTensor &index, int64_t batchDims);

/// How ScatterElements and ScatterND (attribute `reduction`) let what is written meet what is there.
enum class Scatter { Replace, Add, Multiply, Largest, Smallest };
/// Nothing for a word that ONNX does not have.
std::optional<Scatter> parseScatter(const std::string &word);

} // namespace sluice

#endif
