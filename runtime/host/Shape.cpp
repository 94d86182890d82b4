// SPDX-License-Identifier: Apache-2.0
// Kernels that only move elements: permutations and changes of layout (Reorder), concatenation and slicing (Slab).
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace sluice {

namespace {

struct Dimension {
  int64_t extent, strideX, strideY;
};

std::vector<int64_t> strides(const Tensor &tensor) {
  std::vector<int64_t> result(static_cast<size_t>(tensor.shape.rank));
  std::vector<int> order;
  if (tensor.layout == Layout::NHWC && tensor.shape.rank == 4)
    order = {0, 2, 3, 1};
  else
    for (int i = 0; i < tensor.shape.rank; ++i)
      order.push_back(i);
  int64_t step = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    result[static_cast<size_t>(*it)] = step;
    step *= tensor.shape[*it];
  }
  return result;
}

[[noreturn]] void reject(const char *op, const char *node, const std::string &what) {
  throw std::invalid_argument(std::string(op) + " '" + node + "': " + what);
}

std::vector<Dimension> permuted(const char *node, const Tensor &x, const Tensor &y,
                                std::initializer_list<int> permutation) {
  const std::vector<int64_t> sx = strides(x), sy = strides(y);
  if (permutation.size() != sx.size() || sx.size() != sy.size())
    reject("reorder", node,
           "ranks " + std::to_string(sx.size()) + " and " + std::to_string(sy.size()) + " with a permutation of " +
               std::to_string(permutation.size()));
  std::vector<Dimension> result;
  for (int i = 0; i < y.shape.rank; ++i) {
    const int from = permutation.begin()[i];
    if (from < 0 || from >= x.shape.rank || x.shape[from] != y.shape[i])
      reject("reorder", node,
             "dimension " + std::to_string(i) + " of extent " + std::to_string(y.shape[i]) +
                 " does not match input dimension " + std::to_string(from));
    result.push_back({y.shape[i], sx[static_cast<size_t>(from)], sy[static_cast<size_t>(i)]});
  }
  return result;
}

/// Equal row-major element order, different shapes: splits both sides' dimensions, innermost first, until they agree.
std::vector<Dimension> reshaped(const char *node, const Tensor &x, const Tensor &y) {
  const std::vector<int64_t> sx = strides(x), sy = strides(y);
  std::vector<Dimension> result;
  int i = x.shape.rank - 1, j = y.shape.rank - 1;
  int64_t leftX = i >= 0 ? x.shape[i] : 1,
          leftY = j >= 0 ? y.shape[j] : 1; // parts not yet matched, and their strides' factors
  int64_t doneX = 1, doneY = 1;
  while (i >= 0 || j >= 0) {
    if (i >= 0 && leftX == 1) {
      leftX = --i >= 0 ? x.shape[i] : 1, doneX = 1;
      continue;
    }
    if (j >= 0 && leftY == 1) {
      leftY = --j >= 0 ? y.shape[j] : 1, doneY = 1;
      continue;
    }
    const int64_t part = std::min(leftX, leftY);
    if (i < 0 || j < 0 || leftX % part || leftY % part)
      reject("reorder", node,
             "extents " + std::to_string(leftX) + " and " + std::to_string(leftY) + " have no common split");
    result.push_back({part, sx[static_cast<size_t>(i)] * doneX, sy[static_cast<size_t>(j)] * doneY});
    leftX /= part, leftY /= part, doneX *= part, doneY *= part;
  }
  return result;
}

/// Outermost first in y's memory, neighbours merged that both sides walk alike.
std::vector<Dimension> simplified(std::vector<Dimension> all) {
  all.erase(std::remove_if(all.begin(), all.end(), [](const Dimension &d) { return d.extent == 1; }), all.end());
  std::sort(all.begin(), all.end(), [](const Dimension &a, const Dimension &b) { return a.strideY > b.strideY; });
  std::vector<Dimension> result;
  for (const Dimension &d : all)
    if (!result.empty() && result.back().strideX == d.extent * d.strideX &&
        result.back().strideY == d.extent * d.strideY)
      result.back() = {result.back().extent * d.extent, d.strideX, d.strideY};
    else
      result.push_back(d);
  if (result.empty())
    result.push_back({1, 1, 1});
  return result;
}

} // namespace

/// The innermost of y's dimensions is a row; `across` is the dimension that x walks with stride 1 (extent 1 when that
/// is the row itself).
struct Reorder::Impl {
  std::vector<Dimension> outer;
  Dimension across{1, 0, 0}, row{1, 1, 1};
  int64_t outerCount = 1;
  size_t width = 4;

  template <typename T> void run(const T *x, T *y) const {
    constexpr int64_t block = 32;
    const int64_t bands = (across.extent + block - 1) / block;
    const int64_t rowsPerTask =
        std::max<int64_t>(1, 8192 / std::max<int64_t>(1, row.extent * std::min(block, across.extent)));
    parallelRanges(outerCount * bands, rowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t band = task % bands * block;
        int64_t rest = task / bands, fromX = band * across.strideX, toY = band * across.strideY;
        for (auto d = outer.rbegin(); d != outer.rend(); ++d) {
          fromX += rest % d->extent * d->strideX;
          toY += rest % d->extent * d->strideY;
          rest /= d->extent;
        }
        copyBand(x + fromX, y + toY, std::min(block, across.extent - band));
      }
    });
  }

  template <typename T> void copyBand(const T *x, T *y, int64_t count) const {
    if (row.strideX == 1) {
      for (int64_t j = 0; j < count; ++j)
        memcpy(y + j * across.strideY, x + j * across.strideX, static_cast<size_t>(row.extent) * sizeof(T));
      return;
    }
    constexpr int64_t block = 32;
    for (int64_t i0 = 0; i0 < row.extent; i0 += block)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = i0; i < std::min(row.extent, i0 + block); ++i)
          y[j * across.strideY + i] = x[j * across.strideX + i * row.strideX];
  }
};

Reorder::Reorder(const char *node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation)
    : Kernel(node) {
  if (x.type != y.type || x.shape.elements() != y.shape.elements())
    reject("reorder", node,
           std::to_string(x.shape.elements()) + " elements of " + std::to_string(byteWidth(x.type)) + " bytes become " +
               std::to_string(y.shape.elements()) + " of " + std::to_string(byteWidth(y.type)));
  auto plan = std::make_shared<Impl>();
  std::vector<Dimension> all =
      simplified(permutation.size() ? permuted(node, x, y, permutation) : reshaped(node, x, y));
  plan->row = all.back();
  all.pop_back();
  const auto across = std::find_if(all.begin(), all.end(), [&](const Dimension &d) { return d.strideX == 1; });
  if (across != all.end() && plan->row.strideX != 1) {
    plan->across = *across;
    all.erase(across);
  }
  for (const Dimension &d : all)
    plan->outerCount *= d.extent;
  plan->outer = std::move(all);
  plan->width = byteWidth(x.type);
  impl = plan;
}

void Reorder::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  stream.launch(node, "reorder", [plan = impl.get(), from, to] {
    if (plan->width == 1)
      plan->run(static_cast<const uint8_t *>(from), static_cast<uint8_t *>(to));
    else if (plan->width == 4)
      plan->run(static_cast<const uint32_t *>(from), static_cast<uint32_t *>(to));
    else
      plan->run(static_cast<const uint64_t *>(from), static_cast<uint64_t *>(to));
  });
}

Slab::Slab(const char *node, const Tensor &large, const Tensor &small, int axis, int64_t begin) : Kernel(node) {
  if (large.type != small.type || large.layout != small.layout || large.shape.rank != small.shape.rank || axis < 0 ||
      axis >= large.shape.rank)
    reject("slab", node,
           "types, layouts and ranks differ, or axis " + std::to_string(axis) + " is not one of " +
               std::to_string(large.shape.rank));
  for (int i = 0; i < large.shape.rank; ++i)
    if (i == axis ? begin < 0 || begin + small.shape[i] > large.shape[i] : small.shape[i] != large.shape[i])
      reject("slab", node,
             "extent " + std::to_string(small.shape[i]) + " at " + std::to_string(i == axis ? begin : 0) + " of " +
                 std::to_string(large.shape[i]) + " in dimension " + std::to_string(i));
  const auto step = strides(large)[static_cast<size_t>(axis)] * static_cast<int64_t>(byteWidth(large.type));
  start = begin * step;
  largeStride = large.shape[axis] * step;
  smallStride = small.shape[axis] * step;
  outer = largeStride ? static_cast<int64_t>(large.bytes()) / largeStride : 0;
}

void Slab::copy(Stream &stream, const char *op, const char *from, int64_t fromStride, char *to,
                int64_t toStride) const {
  stream.launch(node, op, [this, from, fromStride, to, toStride] {
    // A slab of few long runs is cut inside its runs, one of many short runs between them.
    const int64_t piece = std::min<int64_t>(smallStride, 1 << 16),
                  pieces = piece ? (smallStride + piece - 1) / piece : 0;
    parallelRanges(outer * pieces, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, piece)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t at = i % pieces * piece;
                       memcpy(to + i / pieces * toStride + at, from + i / pieces * fromStride + at,
                              static_cast<size_t>(std::min(piece, smallStride - at)));
                     }
                   });
  });
}

void Slab::insert(Stream &stream, const Tensor &small, const Tensor &large) const {
  copy(stream, "insert", stream.data<char>(small), smallStride, stream.data<char>(large) + start, largeStride);
}

void Slab::extract(Stream &stream, const Tensor &large, const Tensor &small) const {
  copy(stream, "extract", stream.data<char>(large) + start, largeStride, stream.data<char>(small), smallStride);
}

} // namespace sluice
