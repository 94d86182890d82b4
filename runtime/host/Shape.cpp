// SPDX-License-Identifier: Apache-2.0
// Kernels that only move elements: permutations and changes of layout (Reorder), concatenation and slicing (Slab).
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/Strides.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice {

namespace {

using Dimension = StridedDimension;

template <typename Y, typename X> Y converted(X x) {
  if constexpr (std::is_same_v<X, float> && std::is_same_v<Y, int64_t>)
    return wholeNumber(x);
  return static_cast<Y>(x);
}

} // namespace

/// The innermost of y's dimensions is a row; `across` is the dimension that x walks with stride 1 (extent 1 when that
/// is the row itself).
struct Reorder::Impl {
  std::vector<Dimension> outer;
  Dimension across{1, 0, 0}, row{1, 1, 1};
  int64_t outerCount = 1;
  size_t width = 4;
  bool casts = false, toIntegers = false; ///< between integers and floats

  template <typename X, typename Y> void run(const X *x, Y *y) const {
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

  template <typename X, typename Y> void copyBand(const X *x, Y *y, int64_t count) const {
    if (std::is_same_v<X, Y> && row.strideX == 1) {
      for (int64_t j = 0; j < count; ++j)
        memcpy(y + j * across.strideY, x + j * across.strideX, static_cast<size_t>(row.extent) * sizeof(X));
      return;
    }
    constexpr int64_t block = 32;
    for (int64_t i0 = 0; i0 < row.extent; i0 += block)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = i0; i < std::min(row.extent, i0 + block); ++i)
          y[j * across.strideY + i] = converted<Y>(x[j * across.strideX + i * row.strideX]);
  }
};

Reorder::Reorder(Node node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation) : Kernel(node) {
  requireF32(node, x.type);
  requireF32(node, y.type);
  auto plan = std::make_shared<Impl>();
  std::vector<Dimension> all = reorderDimensions(node, x, y, permutation);
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
  plan->casts = x.type != y.type;
  plan->toIntegers = plan->casts && y.type == DataType::I64;
  impl = plan;
}

void Reorder::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  stream.launch(node, impl->casts ? "cast" : "reorder", [plan = impl.get(), from, to] {
    if (plan->toIntegers)
      plan->run(static_cast<const float *>(from), static_cast<int64_t *>(to));
    else if (plan->casts)
      plan->run(static_cast<const int64_t *>(from), static_cast<float *>(to));
    else if (plan->width == 1)
      plan->run(static_cast<const uint8_t *>(from), static_cast<uint8_t *>(to));
    else if (plan->width == 4)
      plan->run(static_cast<const uint32_t *>(from), static_cast<uint32_t *>(to));
    else
      plan->run(static_cast<const uint64_t *>(from), static_cast<uint64_t *>(to));
  });
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
