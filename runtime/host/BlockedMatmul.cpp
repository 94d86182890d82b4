// SPDX-License-Identifier: Apache-2.0
// See BlockedMatmul.h. Tasks are blocks of columns, and of rows where there are few columns.
#include "runtime/host/BlockedMatmul.h"

#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cassert>

namespace sluice {

namespace {
constexpr int64_t depthAtOnce = 256, mostColumns = 96, rowsAtOnce = 192;
} // namespace

/// What one task makes of one product of the batch.
struct BlockedMatmul::Block {
  int64_t row, rows, column, columns;
};

BlockedMatmul::BlockedMatmul(const MatmulShape &shape, bool transposeA, bool transposeB)
    : shape(shape), rowStepA(transposeA ? 1 : shape.k), depthStepA(transposeA ? shape.m : 1),
      depthStepB(transposeB ? 1 : shape.n), columnStepB(transposeB ? shape.k : 1) {}

int64_t BlockedMatmul::columnsEach() const {
  const int64_t width = tile::panelColumns(shape.n);
  return std::min(mostColumns / width, tile::panels(shape.n)) * width;
}

size_t BlockedMatmul::workspaceBytes() const {
  return sizeof(float) * static_cast<size_t>(threads() * std::min(depthAtOnce, shape.k) * columnsEach());
}

/// Depths [begin, end) of some columns as panels [panel][depth][column], the last one filled up with zeros.
void BlockedMatmul::pack(const float *b, int64_t begin, int64_t end, int64_t column, int64_t columns, float *to) const {
  const int64_t width = tile::panelColumns(shape.n);
  for (int64_t first = 0; first < columns; first += width) {
    const int64_t count = std::min(width, columns - first);
    const float *from = b + (column + first) * columnStepB;
    if (count < width)
      std::fill_n(to, (end - begin) * width, 0.0f);
    if (columnStepB == 1)
      for (int64_t k = begin; k < end; ++k)
        std::copy_n(from + k * depthStepB, count, to + (k - begin) * width);
    else
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = begin; k < end; ++k)
          to[(k - begin) * width + i] = from[i * columnStepB + k * depthStepB];
    to += (end - begin) * width;
  }
}

void BlockedMatmul::multiply(const Block &block, const float *a, const float *b, float alpha, float *c,
                             float *work) const {
  const int64_t width = tile::panelColumns(shape.n);
  float *to = c + block.row * shape.n + block.column;
  for (int64_t begin = 0; begin < shape.k; begin += depthAtOnce) {
    const int64_t end = std::min(shape.k, begin + depthAtOnce);
    pack(b, begin, end, block.column, block.columns, work);
    for (int64_t row = 0; row < block.rows; row += rowsAtOnce) {
      tile::Factors f{
          a + (block.row + row) * rowStepA + begin * depthStepA, rowStepA, depthStepA, work, width, end - begin};
      for (int64_t column = 0; column < block.columns; column += width, f.b += (end - begin) * width)
        tile::multiply(f, std::min(rowsAtOnce, block.rows - row), to + row * shape.n + column, shape.n,
                       std::min(width, block.columns - column), width > tile::lanes, begin > 0);
    }
  }
  for (int64_t row = 0; alpha != 1 && row < block.rows; ++row)
    for (int64_t i = 0; i < block.columns; ++i)
      to[row * shape.n + i] *= alpha;
}

void BlockedMatmul::run(const float *a, const float *b, float alpha, float *c, void *scratch) const {
  assert(tile::form() == tile::compiled);
  const int64_t columns = columnsEach(), columnTasks = (shape.n + columns - 1) / columns,
                products = shape.loops * shape.batch;
  const int64_t wanted = std::max<int64_t>(1, 2 * threads() / (columnTasks * products));
  const int64_t rows = std::max<int64_t>(tile::rows, (shape.m / wanted + tile::rows - 1) / tile::rows * tile::rows);
  const int64_t rowTasks = (shape.m + rows - 1) / rows, all = products * rowTasks * columnTasks;
  const int64_t tasks = std::min<int64_t>(threads(), all), each = std::min(depthAtOnce, shape.k) * columns;
  parallelFor(tasks, [&](int64_t task) {
    for (int64_t i = task; i < all; i += tasks) {
      const int64_t product = i / columnTasks / rowTasks, loop = product / shape.batch, member = product % shape.batch;
      const int64_t row = i / columnTasks % rowTasks * rows, column = i % columnTasks * columns;
      multiply({row, std::min(rows, shape.m - row), column, std::min(columns, shape.n - column)},
               a + shape.offsetA(loop) + member * shape.strideA, b + shape.offsetB(loop) + member * shape.strideB,
               alpha, c + product * shape.m * shape.n, static_cast<float *>(scratch) + task * each);
    }
  });
}

} // namespace sluice
