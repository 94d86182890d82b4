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

void BlockedMatmul::multiply(const Block &block, const float *a, const float *b, float alpha, float *c,
                             float *work) const {
  const int64_t width = tile::panelColumns(shape.n);
  float *to = c + block.row * shape.n + block.column;
  for (int64_t begin = 0; begin < shape.k; begin += depthAtOnce) {
    const int64_t end = std::min(shape.k, begin + depthAtOnce);
    tile::pack(b + begin * depthStepB + block.column * columnStepB, depthStepB, columnStepB, end - begin, block.columns,
               width, work);
    for (int64_t row = 0; row < block.rows; row += rowsAtOnce) {
      const float *from = a + (block.row + row) * rowStepA + begin * depthStepA;
      tile::multiplyPacked({from, rowStepA, depthStepA, work, width, end - begin},
                           std::min(rowsAtOnce, block.rows - row), to + row * shape.n, shape.n, block.columns,
                           begin > 0);
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
