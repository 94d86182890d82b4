// SPDX-License-Identifier: Apache-2.0
// Builds the strides of every operand in physical order, then merges dimensions from the inside out.
#include "runtime/FusedGeometry.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace sluice {

namespace {

/// Physical order of logical dimensions, outermost first.
std::array<int, Shape::maxRank> physicalOrder(int rank, Layout layout) {
  std::array<int, Shape::maxRank> order{};
  for (int i = 0; i < rank; ++i)
    order[static_cast<size_t>(i)] = dimensionAt(i, rank, layout);
  return order;
}

[[noreturn]] void reject(const char *node, const std::string &what) {
  throw std::invalid_argument(std::string("a region of '") + node + "': " + what);
}

struct Builder {
  const char *node;
  Shape shape; ///< in physical order
  std::array<int, Shape::maxRank> order;
  FusedGeometry &geometry;
  int64_t (*stride)[Shape::maxRank]; ///< per operand and physical dimension
  int operands = 0;

  void check(const Tensor &tensor, const Shape &logical) const {
    const bool mask = tensor.type == DataType::Bit && tensor.shape == logical;
    const bool real = tensor.type == DataType::F32 || isHalf(tensor.type);
    if ((!real && !mask) || tensor.shape.rank > logical.rank)
      reject(node, "operand " + std::to_string(operands) + " has neither floats nor a whole mask, or has rank " +
                       std::to_string(tensor.shape.rank) + " above " + std::to_string(logical.rank));
  }

  /// Strides of a broadcast operand. One of the region's rank has its layout; a smaller one is row-major, where at most
  /// one of its dimensions is an image's, or where layout does not matter.
  void add(const Tensor &tensor, const Shape &logical) {
    if (operands == FusedGeometry::maxOperands)
      reject(node, "more than " + std::to_string(FusedGeometry::maxOperands) + " operands");
    check(tensor, logical);
    const int missing = logical.rank - tensor.shape.rank;
    const std::array<int, Shape::maxRank> own = physicalOrder(tensor.shape.rank, tensor.layout);
    int64_t step = 1, strides[Shape::maxRank] = {};
    for (int i = tensor.shape.rank - 1; i >= 0; --i) {
      const int d = own[static_cast<size_t>(i)];
      if (tensor.shape[d] != 1 && tensor.shape[d] != logical[missing + d])
        reject(node, "operand " + std::to_string(operands) + " has extent " + std::to_string(tensor.shape[d]) +
                         " against " + std::to_string(logical[missing + d]) + " in dimension " +
                         std::to_string(missing + d));
      strides[missing + d] = tensor.shape[d] == 1 ? 0 : step;
      step *= tensor.shape[d];
    }
    for (int i = 0; i < logical.rank; ++i)
      stride[operands][i] = strides[order[static_cast<size_t>(i)]];
    ++operands;
  }

  void addSum(const Tensor &tensor) {
    if (operands == FusedGeometry::maxOperands)
      reject(node, "more than " + std::to_string(FusedGeometry::maxOperands) + " operands");
    const int64_t inner = shape.rank ? shape[shape.rank - 1] : 1, count = tensor.shape.elements();
    if (tensor.type != DataType::F32 || (count != 1 && count != inner))
      reject(node,
             "a sum has " + std::to_string(count) + " elements; the innermost dimension has " + std::to_string(inner));
    geometry.vectorSum[geometry.sums++] = count != 1;
    for (int i = 0; i < shape.rank; ++i)
      stride[operands][i] = i == shape.rank - 1 && count != 1 ? 1 : 0;
    ++operands;
  }

  bool merges(int dimension) const {
    for (int operand = 0; operand < operands; ++operand) {
      const int sum = operand - geometry.inputs - geometry.outputs;
      if (sum >= 0 && !geometry.vectorSum[sum])
        continue; // a scalar sum does not care along which dimensions it is summed
      if (stride[operand][dimension] != stride[operand][dimension + 1] * shape[dimension + 1])
        return false;
    }
    return true;
  }

  /// The innermost extent after merging the dimensions that continue it; `outer` dimensions remain.
  int64_t mergeInner(int &outer) {
    outer = std::max(0, shape.rank - 1);
    int64_t inner = shape.rank ? shape[outer] : 1;
    for (; inner > 1 && outer > 0 && merges(outer - 1); --outer) {
      inner *= shape[outer - 1];
      for (int operand = 0; operand < operands; ++operand)
        stride[operand][outer - 1] = stride[operand][outer];
      shape.dims[outer - 1] = inner;
    }
    return inner;
  }

  /// Moves the first `count` dimensions into the geometry, without those of extent 1, neighbours merged. The number of
  /// rows.
  int64_t mergeOuter(int count) {
    int64_t rows = 1;
    for (int d = 0; d < count; ++d) {
      if (shape[d] == 1)
        continue;
      rows *= shape[d];
      bool same = geometry.outer > 0;
      for (int operand = 0; operand < operands && same; ++operand)
        same = geometry.stride[operand][geometry.outer - 1] == stride[operand][d] * shape[d];
      const int slot = same ? geometry.outer - 1 : geometry.outer++;
      geometry.extent[slot] = same ? geometry.extent[slot] * shape[d] : shape[d];
      for (int operand = 0; operand < operands; ++operand)
        geometry.stride[operand][slot] = stride[operand][d];
    }
    return rows;
  }
};

} // namespace

FusedGeometry::FusedGeometry(const char *node, const Shape &logical, Layout layout, TensorList in, const bool *steps,
                             TensorList out, TensorList sum) {
  int64_t full[maxOperands][Shape::maxRank] = {};
  Builder builder{node, {}, physicalOrder(logical.rank, layout), *this, full};
  builder.shape.rank = logical.rank;
  for (int i = 0; i < logical.rank; ++i)
    builder.shape.dims[i] = logical[builder.order[static_cast<size_t>(i)]];
  for (const Tensor &tensor : in)
    builder.add(tensor, logical), ++inputs;
  for (const Tensor &tensor : out) {
    if (!(tensor.shape == logical))
      reject(node, "output " + std::to_string(outputs) + " has " + std::to_string(tensor.shape.elements()) +
                       " elements of " + std::to_string(logical.elements()));
    builder.add(tensor, logical), ++outputs;
  }
  for (const Tensor &tensor : sum)
    builder.addSum(tensor);

  // With extent 1 in the innermost dimension strides follow `steps`, and nothing else depends on them.
  const int last = logical.rank - 1;
  for (int i = 0; i < inputs && last >= 0 && builder.shape[last] > 1; ++i)
    if ((full[i][last] == 1) != steps[i])
      reject(node, "input " + std::to_string(i) + (steps[i] ? " is constant" : " advances") +
                       " along the innermost dimension of extent " + std::to_string(builder.shape[last]));
  int outerDimensions = 0;
  rowExtent = builder.mergeInner(outerDimensions);
  rows = builder.mergeOuter(outerDimensions);
  cutIntoRows(steps);
}

void FusedGeometry::cutIntoRows(const bool *steps) {
  lastRow = rowExtent;
  const bool vectors = std::find(vectorSum, vectorSum + sums, true) != vectorSum + sums;
  if (rows == 1 && rowExtent > Columns::tileWidth && !vectors) { // one long row becomes many
    rows = (rowExtent + Columns::tileWidth - 1) / Columns::tileWidth;
    lastRow = rowExtent - (rows - 1) * Columns::tileWidth;
    rowExtent = Columns::tileWidth;
    outer = 1, extent[0] = rows;
    for (int operand = 0; operand < inputs + outputs; ++operand)
      stride[operand][0] = operand < inputs && !steps[operand] ? 0 : rowExtent;
  }
  lastSingleRow = lastRow;
  columns = Columns(rows, rowExtent);
  if (Columns::group(rows, rowExtent) > 1)
    groupRows(steps);
}

void FusedGeometry::groupRows(const bool *steps) {
  group = Columns::group(rows, rowExtent);
  columns = Columns((rows + group - 1) / group, group * rowExtent);
  lastRow = (rows - (columns.rows - 1) * group) * rowExtent;
  wide = outer == 1;
  for (int i = 0; i < inputs; ++i)
    wide &= stride[i][0] == 0 || (steps[i] && stride[i][0] == rowExtent);
  for (int i = 0; i < inputs && wide; ++i)
    repeats[i] = steps[i] && stride[i][0] == 0;
}

size_t FusedGeometry::workspaceBytes() const {
  return sizeof(double) * static_cast<size_t>(sums * columns.chunks * columns.columns);
}

int64_t FusedGeometry::offset(int operand, int64_t row) const {
  int64_t offset = 0;
  for (int d = outer - 1; d > 0; --d) {
    offset += row % extent[d] * stride[operand][d];
    row /= extent[d];
  }
  return outer ? offset + row * stride[operand][0] : 0;
}

void FusedGeometry::finishSums(const double *partials, float *const *results) const {
  const int64_t width = columns.columns;
  for (int s = 0; s < sums; ++s) {
    double total = 0;
    for (int64_t i = 0; i < rowExtent; ++i) {
      double column = 0;
      for (int64_t chunk = 0; chunk < columns.chunks; ++chunk)
        for (int64_t at = i; at < width; at += rowExtent)
          column += partials[(chunk * sums + s) * width + at];
      total += column;
      if (vectorSum[s])
        results[s][i] = static_cast<float>(column);
    }
    if (!vectorSum[s])
      results[s][0] = static_cast<float>(total);
  }
}

void RegionSignature::check(const char *node, TensorList in, TensorList out, TensorList summed) const {
  if (in.count != inputs || out.count != outputs || summed.count != sums)
    throw std::invalid_argument(std::string("a region of '") + node + "' got " + std::to_string(in.count) +
                                " inputs, " + std::to_string(out.count) + " outputs and " +
                                std::to_string(summed.count) + " sums");
  for (size_t i = 0; i < inputs + outputs; ++i)
    if ((i < inputs ? in.begin()[i] : out.begin()[i - inputs]).type != types[i])
      throw std::invalid_argument(std::string("a region of '") + node + "' got another element type for operand " +
                                  std::to_string(i) + " than it was printed for");
}

} // namespace sluice
