// SPDX-License-Identifier: Apache-2.0
// See BlockedMatmul.h. Tasks are blocks of columns, and of rows where there are few columns.
#include "runtime/host/BlockedMatmul.h"

#include "runtime/Kernels.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cassert>

namespace sluice {

namespace {
constexpr int64_t depthAtOnce = 256, mostColumns = 96, rowsAtOnce = 192;
constexpr int64_t tallest = 4 * rowsAtOnce; ///< rows of a result of bf16 for which the right factor is packed again
} // namespace

/// What one task makes of one product of the batch.
struct BlockedMatmul::Block {
  int64_t row, rows, column, columns;
};

BlockedMatmul::BlockedMatmul(const MatmulShape &shape, bool transposeA, bool transposeB, DataType factors,
                             DataType result, int64_t step)
    : shape(shape), rowStepA(transposeA ? 1 : shape.k), depthStepA(transposeA ? shape.m : 1),
      depthStepB(transposeB ? 1 : shape.n), columnStepB(transposeB ? shape.k : 1), rowStepC(step ? step : shape.n),
      factors(factors), result(result) {
  assert(!step || shape.loops * shape.batch == 1);
}

int64_t BlockedMatmul::columnsEach() const {
  const int64_t width = tile::panelColumns(shape.n);
  return std::min(mostColumns / width, tile::panels(shape.n)) * width;
}

int64_t BlockedMatmul::tallestBlock() const { return std::min(tallest, shape.m); }

/// Floats of one thread: a packed block, of bf16 also a block of the left factor and one of the result.
int64_t BlockedMatmul::scratchEach() const {
  const int64_t depth = std::min(depthAtOnce, shape.k), packed = depth * columnsEach();
  return factors == DataType::F32 ? packed
                                  : packed + std::min(rowsAtOnce, shape.m) * depth + tallestBlock() * columnsEach();
}

size_t BlockedMatmul::workspaceBytes() const { return sizeof(float) * static_cast<size_t>(threads() * scratchEach()); }

void BlockedMatmul::multiply(const Block &block, const float *a, const float *b, float alpha, const float *, float *c,
                             float *work) const {
  const int64_t width = tile::panelColumns(shape.n);
  float *to = c + block.row * rowStepC + block.column;
  for (int64_t begin = 0; begin < shape.k; begin += depthAtOnce) {
    const int64_t end = std::min(shape.k, begin + depthAtOnce);
    tile::pack(b + begin * depthStepB + block.column * columnStepB, depthStepB, columnStepB, end - begin, block.columns,
               width, work);
    for (int64_t row = 0; row < block.rows; row += rowsAtOnce) {
      const float *from = a + (block.row + row) * rowStepA + begin * depthStepA;
      tile::multiplyPacked({from, rowStepA, depthStepA, work, width, end - begin},
                           std::min(rowsAtOnce, block.rows - row), to + row * rowStepC, rowStepC, block.columns,
                           begin > 0 || shape.adds);
    }
  }
  for (int64_t row = 0; alpha != 1 && row < block.rows; ++row)
    for (int64_t i = 0; i < block.columns; ++i)
      to[row * rowStepC + i] *= alpha;
}

/// `lines` of so many adjacent elements, `step` apart, one after another.
static void widen(const BFloat16 *a, int64_t step, int64_t lines, int64_t elements, float *to) {
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t i = 0; i < elements; ++i)
      to[line * elements + i] = widened(a[line * step + i]);
}

template <typename C>
void BlockedMatmul::multiply(const Block &block, const BFloat16 *a, const BFloat16 *b, float alpha, const C *bias, C *c,
                             float *work) const {
  const int64_t width = tile::panelColumns(shape.n), most = std::min(depthAtOnce, shape.k);
  float *left = work + most * columnsEach(), *sums = left + std::min(rowsAtOnce, shape.m) * most;
  for (int64_t top = 0; top < block.rows; top += tallestBlock()) {
    const int64_t rows = std::min(tallestBlock(), block.rows - top);
    for (int64_t begin = 0; begin < shape.k; begin += depthAtOnce) {
      const int64_t depth = std::min(depthAtOnce, shape.k - begin);
      tile::pack(b + begin * depthStepB + block.column * columnStepB, depthStepB, columnStepB, depth, block.columns,
                 width, work);
      for (int64_t row = 0; row < rows; row += rowsAtOnce) {
        const int64_t count = std::min(rowsAtOnce, rows - row);
        const BFloat16 *from = a + (block.row + top + row) * rowStepA + begin * depthStepA;
        const bool byRows = depthStepA == 1; // else by columns, as they lie in memory
        widen(from, byRows ? rowStepA : depthStepA, byRows ? count : depth, byRows ? depth : count, left);
        tile::multiplyPacked({left, byRows ? depth : 1, byRows ? 1 : count, work, width, depth}, count,
                             sums + row * block.columns, block.columns, block.columns, begin > 0);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      C *to = c + (block.row + top + row) * rowStepC + block.column;
      for (int64_t i = 0; i < block.columns; ++i)
        store(to + i, alpha * sums[row * block.columns + i] + (bias         ? widened(bias[block.column + i])
                                                               : shape.adds ? widened(to[i])
                                                                            : 0.0f));
    }
  }
}

template <typename T, typename C>
void BlockedMatmul::runTyped(const T *a, const T *b, float alpha, const C *bias, C *c, float *scratch) const {
  assert(tile::form() == tile::compiled);
  const int64_t columns = columnsEach(), columnTasks = (shape.n + columns - 1) / columns,
                products = shape.loops * shape.batch;
  const int64_t wanted = std::max<int64_t>(1, 2 * threads() / (columnTasks * products));
  const int64_t rows = std::max<int64_t>(tile::rows, (shape.m / wanted + tile::rows - 1) / tile::rows * tile::rows);
  const int64_t rowTasks = (shape.m + rows - 1) / rows, all = products * rowTasks * columnTasks;
  const int64_t tasks = std::min<int64_t>(threads(), all), each = scratchEach();
  parallelFor(tasks, [&](int64_t task) {
    for (int64_t i = task; i < all; i += tasks) {
      const int64_t product = i / columnTasks / rowTasks, loop = product / shape.batch, member = product % shape.batch;
      const int64_t row = i / columnTasks % rowTasks * rows, column = i % columnTasks * columns;
      multiply({row, std::min(rows, shape.m - row), column, std::min(columns, shape.n - column)},
               a + shape.offsetA(loop) + member * shape.strideA, b + shape.offsetB(loop) + member * shape.strideB,
               alpha, bias, c + product * shape.m * shape.n, scratch + task * each);
    }
  });
}

void BlockedMatmul::run(const void *a, const void *b, float alpha, const void *row, void *c, void *scratch) const {
  auto *work = static_cast<float *>(scratch), *floats = static_cast<float *>(c);
  const auto *halfA = static_cast<const BFloat16 *>(a), *halfB = static_cast<const BFloat16 *>(b);
  const auto *bias = static_cast<const float *>(row);
  if (factors == DataType::F32)
    runTyped(static_cast<const float *>(a), static_cast<const float *>(b), alpha, bias, floats, work);
  else if (result == DataType::F32)
    runTyped(halfA, halfB, alpha, bias, floats, work);
  else
    runTyped(halfA, halfB, alpha, static_cast<const BFloat16 *>(row), static_cast<BFloat16 *>(c), work);
}

} // namespace sluice
