// SPDX-License-Identifier: Apache-2.0
// Positions from indices, each of which is compared with the extent that it counts along.
#include "frontend/IndexedPositions.h"
#include <algorithm>

namespace sluice {
namespace {

/// `index` counted from the front.
Result<int64_t> within(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    return Error{"index " + std::to_string(index) + " is outside the extent " + std::to_string(extent)};
  return index < 0 ? index + extent : index;
}

Error misfit(const std::vector<int64_t> &shape, const HostTensor &index) {
  return Error{"indices of shape " + shapeText(index.shape) + " do not fit a tensor of shape " + shapeText(shape)};
}

int64_t product(const std::vector<int64_t> &shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i)
    count *= shape[i];
  return count;
}

} // namespace

/// The result has the shape of `index`. Along `axis` the index counts; along others an element lies where its index
/// does, which is why `index` may be smaller there but not larger.
Result<HostTensor> elementPositions(const std::vector<int64_t> &shape, const HostTensor &index, int64_t axis) {
  const size_t rank = shape.size();
  if (!index.integral)
    return Error{"indices must be integers"};
  if (index.shape.size() != rank || !elementCount(shape))
    return misfit(shape, index);
  for (size_t i = 0; i < rank; ++i)
    if (static_cast<int64_t>(i) != axis && index.shape[i] > shape[i])
      return misfit(shape, index);
  HostTensor positions = index;
  for (int64_t at = 0; at < index.size(); ++at) {
    Result<int64_t> along = within(index.ints[at], shape[axis]);
    if (!along)
      return along.takeError();
    int64_t position = 0, rest = at, stride = 1;
    for (size_t i = rank; i-- > 0; rest /= index.shape[i], stride *= shape[i])
      position += (static_cast<int64_t>(i) == axis ? *along : rest % index.shape[i]) * stride;
    positions.ints[at] = position;
  }
  return positions;
}

/// A tuple names a block after the batch dimensions, which it shares with the tensor; what is behind the tuple's
/// dimensions is the block.
Result<IndexedBlocks> blockPositions(const std::vector<int64_t> &shape, const HostTensor &index, int64_t batchDims) {
  if (!index.integral)
    return Error{"indices must be integers"};
  const int64_t rank = static_cast<int64_t>(shape.size()), indexRank = static_cast<int64_t>(index.shape.size());
  const int64_t length = indexRank > 0 ? index.shape.back() : 0;
  if (!elementCount(shape) || length < 1 || batchDims < 0 || batchDims >= indexRank || batchDims > rank ||
      length > rank - batchDims || !std::equal(shape.begin(), shape.begin() + batchDims, index.shape.begin()))
    return misfit(shape, index);
  IndexedBlocks named;
  named.blocks = product(shape, 0, batchDims + length);
  named.size = product(shape, batchDims + length, rank);
  named.shape.assign(index.shape.begin(), index.shape.end() - 1);
  const int64_t count = product(named.shape, 0, named.shape.size()), batches = product(shape, 0, batchDims);
  const int64_t perBatch = batches ? count / batches : 0;
  named.shape.insert(named.shape.end(), shape.begin() + batchDims + length, shape.end());
  auto positions = HostTensor::zeros({count}, /*integral=*/true);
  if (!positions)
    return Error{"indices of shape " + shapeText(index.shape) + " are too many to fold"};
  for (int64_t tuple = 0; tuple < count; ++tuple) {
    int64_t position = perBatch ? tuple / perBatch : 0;
    for (int64_t i = 0; i < length; ++i) {
      Result<int64_t> along = within(index.ints[tuple * length + i], shape[batchDims + i]);
      if (!along)
        return along.takeError();
      position = position * shape[batchDims + i] + *along;
    }
    positions->ints[tuple] = position;
  }
  named.positions = std::move(*positions);
  return named;
}

std::optional<Scatter> parseScatter(const std::string &word) {
  if (word == "none")
    return Scatter::Replace;
  if (word == "add")
    return Scatter::Add;
  if (word == "mul")
    return Scatter::Multiply;
  if (word == "max")
    return Scatter::Largest;
  return word == "min" ? std::optional(Scatter::Smallest) : std::nullopt;
}

} // namespace sluice
