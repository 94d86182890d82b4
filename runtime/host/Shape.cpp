// SPDX-License-Identifier: Apache-2.0
// Kernels that only move elements: permutations and changes of layout (Reorder), slicing (Slab) and concatenation
// (join).
#include "runtime/Join.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Prefetch.h"
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
  if constexpr (std::is_same_v<X, BFloat16>)
    return widened(x);
  else if constexpr (std::is_same_v<Y, BFloat16>)
    return bfloat16Of(x);
  else if constexpr (std::is_same_v<X, float>)
    return wholeNumber(x);
  else
    return static_cast<Y>(x);
}

/// Neighbours in both.
template <typename X, typename Y> void copyRow(const X *x, Y *y, int64_t count) {
  if constexpr (std::is_same_v<X, Y>)
    memcpy(y, x, static_cast<size_t>(count) * sizeof(X));
  else
    for (int64_t i = 0; i < count; ++i)
      y[i] = converted<Y>(x[i]);
}

} // namespace

/// The innermost of y's dimensions is a row; `across` is the dimension that x walks with stride 1 (extent 1 when that
/// is the row itself).
struct Reorder::Impl {
  std::vector<Dimension> outer;
  Dimension across{1, 0, 0}, row{1, 1, 1};
  int64_t outerCount = 1;
  size_t width = 4;
  DataType from{}, to{};

  template <typename X, typename Y> void run(const X *x, Y *y) const {
    constexpr int64_t block = 32, longest = 1 << 15;
    if (outerCount == 1 && across.extent == 1 && row.strideX == 1) { // one row
      parallelRanges(row.extent, longest,
                     [&](int64_t begin, int64_t end) { copyRow(x + begin, y + begin, end - begin); });
      return;
    }
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
    if (row.strideX == 1) {
      for (int64_t j = 0; j < count; ++j)
        copyRow(x + j * across.strideX, y + j * across.strideY, row.extent);
      return;
    }
    constexpr int64_t block = 32;
    for (int64_t i0 = 0; i0 < row.extent; i0 += block)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = i0; i < std::min(row.extent, i0 + block); ++i)
          copyRow(x + j * across.strideX + i * row.strideX, y + j * across.strideY + i, 1);
  }
};

Reorder::Reorder(Node node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation) : Kernel(node) {
  refuseF16(node, x.type);
  refuseF16(node, y.type);
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
  plan->from = x.type, plan->to = y.type;
  impl = plan;
}

void Reorder::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  const void *from = stream.address(x);
  void *to = stream.address(y);
  const auto launch = [&](auto *x, auto *y) {
    const char *op = impl->from == impl->to ? "reorder" : "cast";
    using X = std::remove_pointer_t<decltype(x)>;
    using Y = std::remove_pointer_t<decltype(y)>;
    stream.launch(node, op,
                  [plan = impl.get(), from, to] { plan->run(static_cast<const X *>(from), static_cast<Y *>(to)); });
  };
  float *floats = nullptr;
  BFloat16 *halves = nullptr;
  int64_t *integers = nullptr;
  uint8_t *bytes = nullptr;
  uint16_t *pairs = nullptr;
  uint32_t *words = nullptr;
  if (impl->from == impl->to && impl->width == 8)
    launch(integers, integers);
  else if (impl->from == impl->to)
    impl->width == 1 ? launch(bytes, bytes) : impl->width == 2 ? launch(pairs, pairs) : launch(words, words);
  else if (impl->to == DataType::I64)
    launch(floats, integers);
  else if (impl->from == DataType::I64)
    launch(integers, floats);
  else if (impl->to == DataType::BF16)
    launch(floats, halves);
  else
    launch(halves, floats);
}

namespace {

constexpr int64_t page = 4096;

/// Whether so many bytes in runs of `width` go around the caches to `to`: more than caches keep until they are read.
bool streams(int64_t bytes, int64_t width, const char *from, const char *to) {
  constexpr int64_t least = 4 << 20;
  const auto isLine = [](const char *p) { return reinterpret_cast<uintptr_t>(p) % cacheLine == 0; };
  return bytes >= least && width % cacheLine == 0 && isLine(from) && isLine(to);
}

/// One run. Who streams calls finishStreaming() at the end.
void copyRun(bool around, const char *from, char *to, int64_t bytes) {
  if (around)
    streamLines(from, to, bytes);
  else
    memcpy(to, from, static_cast<size_t>(bytes));
}

/// `outer` runs of so many bytes, each so many bytes behind the one before. Few long ones are cut inside, many short
/// ones between them.
struct Runs {
  int64_t outer, width;
};

void copyRuns(Runs runs, const char *from, int64_t fromStride, char *to, int64_t toStride) {
  const int64_t piece = std::min<int64_t>(runs.width, 1 << 16), pieces = piece ? (runs.width + piece - 1) / piece : 0;
  constexpr int64_t ahead = 4;
  // What lies apart; longer runs, and those one behind the other, are followed without being asked for.
  const bool apartFrom = runs.width <= page && fromStride != runs.width,
             apartTo = runs.width <= page && toStride != runs.width;
  const bool around = fromStride % cacheLine == 0 && toStride % cacheLine == 0 &&
                      streams(runs.outer * runs.width, runs.width, from, to);
  parallelRanges(runs.outer * pieces, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, piece)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t at = i % pieces * piece;
                     if (apartFrom)
                       expect(from + (i + ahead) * fromStride, runs.width);
                     if (apartTo && !around)
                       expect(to + (i + ahead) * toStride, runs.width);
                     copyRun(around, from + i / pieces * fromStride + at, to + i / pieces * toStride + at,
                             std::min(piece, runs.width - at));
                   }
                   finishStreaming();
                 });
}

/// Short rows are written whole, one behind the other; of long ones one operand comes after the other.
void joinRows(const JoinedRows &rows, const std::vector<const char *> &from, char *to) {
  constexpr int64_t longRow = 1 << 16, ahead = 8;
  if (rows.bytes > longRow) {
    for (size_t i = 0; i < from.size(); ++i) {
      copyRuns({rows.outer, rows.widths[i]}, from[i], rows.widths[i], to, rows.bytes);
      to += rows.widths[i];
    }
    return;
  }
  bool around = true;
  for (size_t i = 0; i < from.size(); ++i)
    around = around && streams(rows.outer * rows.bytes, rows.widths[i], from[i], to);
  parallelRanges(rows.outer, std::max<int64_t>(1, longRow / std::max<int64_t>(1, rows.bytes)),
                 [&](int64_t begin, int64_t end) {
                   char *out = to + begin * rows.bytes;
                   for (int64_t row = begin; row < end; ++row)
                     for (size_t i = 0; i < from.size(); ++i) {
                       const int64_t width = rows.widths[i];
                       const char *own = from[i] + row * width;
                       if (width <= page)
                         expect(own + ahead * width, width);
                       copyRun(around, own, out, width);
                       out += width;
                     }
                   finishStreaming();
                 });
}

} // namespace

void join(Stream &stream, const Tensor &y, TensorList xs, int axis, Node node) {
  std::vector<const char *> from;
  for (const Tensor &x : xs)
    from.push_back(stream.data<char>(x));
  stream.launch(node, "insert",
                [rows = joinedRows(node, y, xs, axis), from, to = stream.data<char>(y)] { joinRows(rows, from, to); });
}

void Slab::copy(Stream &stream, const char *op, const char *from, int64_t fromStride, char *to,
                int64_t toStride) const {
  stream.launch(node, op, [this, from, fromStride, to, toStride] {
    copyRuns({outer, smallStride}, from, fromStride, to, toStride);
  });
}

void Slab::insert(Stream &stream, const Tensor &small, const Tensor &large) const {
  copy(stream, "insert", stream.data<char>(small), smallStride, stream.data<char>(large) + start, largeStride);
}

void Slab::extract(Stream &stream, const Tensor &large, const Tensor &small) const {
  copy(stream, "extract", stream.data<char>(large) + start, largeStride, stream.data<char>(small), smallStride);
}

} // namespace sluice
