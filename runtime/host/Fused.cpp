// SPDX-License-Identifier: Apache-2.0
// Geometry of elementwise regions: broadcasts become strides of 0, neighbouring dimensions that every operand walks alike become one,
// and the innermost one becomes the row.
#include "runtime/Fused.h"

#include <string>

namespace sluice {

namespace {

/// Physical order of logical dimensions, outermost first.
std::array<int, Shape::maxRank> physicalOrder(int rank, Layout layout) {
  if (layout == Layout::NHWC && rank == 4)
    return {0, 2, 3, 1};
  std::array<int, Shape::maxRank> order{};
  for (int i = 0; i < rank; ++i)
    order[static_cast<size_t>(i)] = i;
  return order;
}

[[noreturn]] void reject(const char *node, const std::string &what) {
  throw std::invalid_argument(std::string("a region of '") + node + "': " + what);
}

struct Builder {
  const char *node;
  Shape shape; ///< in physical order
  Layout layout;
  std::array<int, Shape::maxRank> order;
  FusedGeometry &geometry;
  int64_t (*stride)[Shape::maxRank]; ///< per operand and physical dimension
  int operands = 0;

  /// Strides of a broadcast operand. One of the region's rank has its layout; a smaller one is row-major, where at most one of its
  /// dimensions is an image's, or where layout does not matter.
  void add(const Tensor &tensor, const Shape &logical) {
    if (operands == FusedGeometry::maxOperands)
      reject(node, "more than " + std::to_string(FusedGeometry::maxOperands) + " operands");
    if (tensor.type != DataType::F32 || tensor.shape.rank > logical.rank)
      reject(node, "operand " + std::to_string(operands) + " is not F32 or has rank " + std::to_string(tensor.shape.rank) + " above " +
                       std::to_string(logical.rank));
    const int missing = logical.rank - tensor.shape.rank;
    const std::array<int, Shape::maxRank> own = physicalOrder(tensor.shape.rank, tensor.layout);
    int64_t step = 1, strides[Shape::maxRank] = {};
    for (int i = tensor.shape.rank - 1; i >= 0; --i) {
      const int d = own[static_cast<size_t>(i)];
      if (tensor.shape[d] != 1 && tensor.shape[d] != logical[missing + d])
        reject(node, "operand " + std::to_string(operands) + " has extent " + std::to_string(tensor.shape[d]) + " against " +
                         std::to_string(logical[missing + d]) + " in dimension " + std::to_string(missing + d));
      strides[missing + d] = tensor.shape[d] == 1 ? 0 : step;
      step *= tensor.shape[d];
    }
    for (int i = 0; i < logical.rank; ++i)
      stride[operands][i] = strides[order[static_cast<size_t>(i)]];
    ++operands;
  }

  void addSum(const Tensor &tensor) {
    const int64_t inner = shape.rank ? shape[shape.rank - 1] : 1, count = tensor.shape.elements();
    if (tensor.type != DataType::F32 || (count != 1 && count != inner))
      reject(node, "a sum has " + std::to_string(count) + " elements; the innermost dimension has " + std::to_string(inner));
    geometry.vectorSum[geometry.sums++] = count != 1;
    for (int i = 0; i < shape.rank; ++i)
      stride[operands][i] = i == shape.rank - 1 && count != 1 ? 1 : 0;
    // A scalar sum does not care along which dimensions it is summed: its stride of 0 fits any merge.
    ++operands;
  }

  bool merges(int dimension, const bool *scalarSum) const {
    for (int operand = 0; operand < operands; ++operand)
      if (!scalarSum[operand] && stride[operand][dimension] != stride[operand][dimension + 1] * shape[dimension + 1])
        return false;
    return true;
  }
};

} // namespace

FusedGeometry::FusedGeometry(const char *node, const Shape &logical, Layout layout, TensorList in, const bool *steps, TensorList out,
                             TensorList sum) {
  int64_t full[maxOperands][Shape::maxRank] = {};
  Builder builder{node, {}, layout, physicalOrder(logical.rank, layout), *this, full};
  builder.shape.rank = logical.rank;
  for (int i = 0; i < logical.rank; ++i)
    builder.shape.dims[i] = logical[builder.order[static_cast<size_t>(i)]];
  for (const Tensor &tensor : in)
    builder.add(tensor, logical), ++inputs;
  for (const Tensor &tensor : out) {
    if (!(tensor.shape == logical))
      reject(node, "output " + std::to_string(outputs) + " has " + std::to_string(tensor.shape.elements()) + " elements of " +
                       std::to_string(logical.elements()));
    builder.add(tensor, logical), ++outputs;
  }
  for (const Tensor &tensor : sum)
    builder.addSum(tensor);

  // The row is the innermost dimension; with extent 1 there, strides follow `steps` and nothing else depends on it.
  const int last = logical.rank - 1;
  int64_t inner = last >= 0 ? builder.shape[last] : 1;
  for (int i = 0; i < inputs && inner > 1; ++i)
    if ((full[i][last] == 1) != steps[i])
      reject(node, "input " + std::to_string(i) + (steps[i] ? " is constant" : " advances") + " along the innermost dimension of extent " +
                       std::to_string(inner));
  bool scalarSum[maxOperands] = {};
  for (int i = 0; i < sums; ++i)
    scalarSum[inputs + outputs + i] = !vectorSum[i];
  int dimension = last - 1;
  if (inner > 1)
    for (; dimension >= 0 && builder.merges(dimension, scalarSum); --dimension) {
      inner *= builder.shape[dimension];
      for (int operand = 0; operand < builder.operands; ++operand)
        full[operand][dimension] = full[operand][dimension + 1];
      builder.shape.dims[dimension] *= builder.shape[dimension + 1];
    }
  // Outer dimensions, innermost first into place, dropping those of extent 1 and merging neighbours.
  int64_t rows = 1;
  for (int d = 0; d <= dimension; ++d) {
    if (builder.shape[d] == 1)
      continue;
    rows *= builder.shape[d];
    bool same = outer > 0;
    for (int operand = 0; operand < builder.operands && same; ++operand)
      same = stride[operand][outer - 1] == full[operand][d] * builder.shape[d];
    const int slot = same ? outer - 1 : outer++;
    extent[slot] = same ? extent[slot] * builder.shape[d] : builder.shape[d];
    for (int operand = 0; operand < builder.operands; ++operand)
      stride[operand][slot] = full[operand][d];
  }
  rowExtent = lastRow = inner;
  bool vectors = false;
  for (int i = 0; i < sums; ++i)
    vectors |= vectorSum[i];
  if (rows == 1 && inner > Columns::tileWidth && !vectors) { // cut one long row into many
    rows = (inner + Columns::tileWidth - 1) / Columns::tileWidth;
    lastRow = inner - (rows - 1) * Columns::tileWidth;
    rowExtent = inner = Columns::tileWidth;
    outer = 1, extent[0] = rows;
    for (int operand = 0; operand < builder.operands; ++operand)
      stride[operand][0] = operand < inputs && !steps[operand] ? 0 : operand < inputs + outputs ? inner : 0;
  }
  columns = Columns(rows, inner);
  if (Columns::group(rows, inner) > 1)
    groupRows(rows, steps);
}

void FusedGeometry::groupRows(int64_t rows, const bool *steps) {
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

} // namespace sluice
