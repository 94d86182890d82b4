// SPDX-License-Identifier: Apache-2.0
// How kernels cut a matrix [rows, columns] into blocks of threads, and the workspaces that follow: plain arithmetic
// that the compiler asks too. Everything depends on extents and on --workspace-limit alone, never on the device, so
// that a kernel gives the same bits in every plan.
#pragma once

#include "runtime/Attention.h"
#include "runtime/Recurrence.h"
#include "runtime/kernels/Strides.h"

#include <algorithm>

namespace sluice {

/// A block of 256 threads has `width` threads across, each of which holds 4 neighbouring columns, and `lanes` rows of
/// them. Task (tile, chunk) is a range of columns by a range of rows.
struct Cut {
  static constexpr int threads = 256, vector = 4, mostColumns = 32 * vector; ///< of a tile
  static constexpr int64_t mostRowColumns = 2 * vector * threads;            ///< of whole rows
  static constexpr int64_t rowTasks = 256; ///< blocks of whole rows: each leaves partials of all columns
  static constexpr int64_t sumTasks = 512; ///< blocks of a sum: enough for any device, few enough to combine
  static constexpr int64_t elementTasks = int64_t(1) << 20;
  static constexpr int64_t finishGroup = 16; ///< chunks whose partials one block merges, see Finish.h
  /// Most counters of a sum: its tiles, which are half of sumTasks at most where they have several chunks, and their
  /// groups.
  static constexpr int64_t finishCounters = 2 * (sumTasks / 2) + sumTasks / finishGroup;

  int64_t rows, columns;
  int width = 1, lanes = threads;
  int64_t tiles, chunks, rowsPerChunk;

  /// About `mostTasks` tasks at most (a tile has one at least), of `rowsPerThread` rows at least.
  Cut(int64_t rows, int64_t columns, int64_t mostTasks, int64_t rowsPerThread = 8) : rows(rows), columns(columns) {
    while (width * vector < std::min<int64_t>(mostColumns, columns))
      width *= 2;
    lanes = threads / width;
    tiles = std::max<int64_t>(1, (columns + width * vector - 1) / (width * vector));
    const int64_t wanted = std::max<int64_t>(1, std::min(mostTasks / tiles, rows / (lanes * rowsPerThread)));
    rowsPerChunk = std::max<int64_t>(1, (rows + wanted - 1) / wanted);
    chunks = std::max<int64_t>(1, (rows + rowsPerChunk - 1) / rowsPerChunk);
  }
  /// One tile, of at most mostRowColumns, for blocks that take as many whole rows at a time as they have warps.
  static Cut ofWholeRows(int64_t rows, int64_t columns) {
    constexpr int64_t warps = threads / 32;
    Cut cut(rows, 1, 1);
    cut.columns = columns, cut.width = 2; // two groups of `vector` a thread
    while (cut.width * vector < columns)
      cut.width *= 2;
    cut.lanes = 2 * threads / cut.width;
    cut.rowsPerChunk = ((rows + rowTasks - 1) / rowTasks + warps - 1) / warps * warps;
    cut.chunks = std::max<int64_t>(1, (rows + cut.rowsPerChunk - 1) / cut.rowsPerChunk);
    return cut;
  }
  int64_t tasks() const { return tiles * chunks; }
  /// Threads across where each holds `columns`: tiles, chunks and so partial sums stay the same.
  int widthFor(int columns) const { return std::max(1, width * vector / columns); }
};

/// A SumTo: x as [kept][rows][columns], all rows are summed, and the columns too where `inner` is reduced.
struct SumCut {
  std::vector<SumDimension> kept, reduced; ///< innermost first
  SumDimension inner;
  int64_t keptCount = 1, rows = 1;
  bool isShort; ///< few elements for each result: a warp adds them, without partial sums
  Cut cut{1, 1, 1};

  SumCut(const char *node, const Tensor &x, const Tensor &y) {
    const std::vector<SumDimension> all = sumDimensions(node, x, y);
    inner = all.front();
    for (size_t i = 1; i < all.size(); ++i) {
      (all[i].reduced ? reduced : kept).push_back(all[i]);
      (all[i].reduced ? rows : keptCount) *= all[i].extent;
    }
    constexpr int64_t row = 1024;
    if (all.size() == 1 && inner.reduced && inner.extent % row == 0) { // one long row: many short ones
      rows = inner.extent / row;
      inner.extent = row;
      reduced.push_back({rows, row, 0, true});
    }
    cut = Cut(rows, inner.extent, std::max<int64_t>(1, Cut::sumTasks / std::max<int64_t>(1, keptCount)));
    isShort = inner.reduced && keptCount > 1 && rows * inner.extent <= 4096;
  }
  int64_t scratch() const {
    return isShort ? 0
                   : static_cast<int64_t>(sizeof(double)) * keptCount * cut.chunks *
                         (inner.reduced ? cut.tiles : cut.columns);
  }
};

/// Parts of scratch begin at multiples of this.
constexpr int64_t scratchPart(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Partial sums of `sums` values in double.
inline int64_t sumScratch(const Cut &cut, int sums) {
  return static_cast<int64_t>(sizeof(double)) * sums * cut.chunks * cut.columns;
}

namespace cuda {

/// Partial sums of columnSums().
inline int64_t columnScratch(int64_t rows, int64_t columns) { return sumScratch(Cut(rows, columns, Cut::sumTasks), 1); }

/// Bytes of weights in [O,H,W,I] order, 0 where that is their order anyway. Halves come in that order, and their
/// gradient leaves the engine in it, rounded.
inline int64_t rotatedWeights(const Shape &w, ConvPass pass, DataType type) {
  if (isHalf(type))
    return pass == ConvPass::BackwardWeight ? scratchPart(w.elements() * 2) : 0;
  return w[1] == 1 || w.elements() == w[0] * w[1] ? 0 : scratchPart(w.elements() * 4);
}

/// A convolution's engine may have as much as the operands twice over: what any of them has been seen to ask for.
inline int64_t convolutionScratch(int64_t limit, ConvPass pass, const Shape &x, const Shape &w, const Shape &y,
                                  bool bias, DataType type = DataType::F32) {
  const int64_t own = rotatedWeights(w, pass, type);
  const int64_t generous = 8 * (x.elements() + w.elements() + y.elements()) + (int64_t(1) << 20);
  int64_t engine = std::max<int64_t>(0, std::min(limit - own, scratchPart(generous)));
  if (bias && pass == ConvPass::BackwardWeight)
    engine = std::max(engine, columnScratch(y.elements() / y[1], y[1]));
  return own + engine;
}

inline int64_t matmulScratch(int64_t limit, const Shape &a, const Shape &b, const Shape &c) {
  const int64_t generous = 4 * (a.elements() + b.elements() + c.elements()) + (int64_t(1) << 20);
  return std::min({limit, scratchPart(generous), int64_t(32) << 20});
}

/// Where no epilogue sums up the gradient of a bias: partial sums of a kernel of ours, and behind them the sums, in
/// float.
inline int64_t matmulGeluPartials(const Shape &c) { return scratchPart(columnScratch(c.elements() / c[1], c[1])); }
inline int64_t matmulGeluScratch(int64_t limit, const Shape &a, const Shape &b, const Shape &c, bool sums) {
  const int64_t product = matmulScratch(limit, a, b, c);
  return sums ? std::max(product, matmulGeluPartials(c) + scratchPart(4 * c[1])) : product;
}

/// Whether every row begins at a multiple of 16 bytes, in 16 bits an element.
inline bool hasWholeRows(const AttentionGeometry &g, const AttentionView &view) {
  bool whole = view.offset % 8 == 0 && view.row % 8 == 0;
  for (int i = 0; i < g.leading; ++i)
    whole = whole && view.steps[i] % 8 == 0;
  return whole;
}

/// Whether cuDNN is asked for an attention, see AttentionEngine.h.
inline bool attentionHasEngine(const AttentionGeometry &g, DataType type) {
  return isHalf(type) && !g.kept.present && (!g.mask.present || g.mask.key == 1) && g.depth % 8 == 0 &&
         g.columns % 8 == 0 && hasWholeRows(g, g.q) && hasWholeRows(g, g.k) && hasWholeRows(g, g.v) &&
         hasWholeRows(g, g.y);
}

/// What its engine has of each member in the backward pass: the slopes of all scores, and a number a row.
inline int64_t attentionMemberBytes(AttentionPass pass, const AttentionGeometry &g) {
  auto whole = [](int64_t extent) { return (extent + 127) / 128 * 128; };
  return pass == AttentionPass::Forward ? 0 : 2 * whole(g.rows) * whole(g.keys) + 4 * g.rows;
}
/// What it has beside, forward too.
constexpr int64_t attentionFixedBytes = 256;

/// What a dropout keeps of the scores of `members`, which the engine reads: halves, in front of what it writes.
inline int64_t attentionKeptBytes(const AttentionGeometry &g, float ratio, int64_t members) {
  return ratio > 0 ? scratchPart(2 * members * g.rows * g.keys) : 0;
}

/// Copies for the engine of dy, and after it of logsumexp, without the rows that a mask hides, see AttentionHidden.h;
/// behind what is kept.
inline int64_t attentionVisibleBytes(AttentionPass pass, const AttentionGeometry &g, int64_t members) {
  const bool copies = g.mask.present && pass == AttentionPass::Backward;
  return copies ? scratchPart(2 * members * g.rows * g.columns) + scratchPart(4 * members * g.rows) : 0;
}

/// Of an attention that is computed in `parts` of the members.
inline int64_t attentionBytes(AttentionPass pass, const AttentionGeometry &g, float ratio, int64_t parts) {
  const int64_t members = g.members / parts;
  return attentionKeptBytes(g, ratio, members) + attentionVisibleBytes(pass, g, members) +
         scratchPart(attentionFixedBytes + members * attentionMemberBytes(pass, g));
}

/// In how many parts the members are computed, one at least and no more than there are. Begins with as many as one
/// member's bytes without roundings ask for: fewer cannot do, and their sizes may be more than a number holds.
inline int64_t attentionParts(int64_t limit, AttentionPass pass, const AttentionGeometry &g, float ratio) {
  constexpr int64_t roundings = 4 * 256;
  const int64_t each =
      attentionBytes(pass, g, ratio, std::max<int64_t>(1, g.members)) - attentionFixedBytes - roundings;
  const int64_t most = std::max<int64_t>(1, limit / std::max<int64_t>(1, each)); // members in a part
  int64_t parts = std::max<int64_t>(1, (g.members + most - 1) / most);
  while (parts < g.members && (g.members % parts || attentionBytes(pass, g, ratio, parts) > limit))
    ++parts;
  return parts;
}

/// 0 where our own kernels compute it.
inline int64_t attentionScratch(int64_t limit, AttentionPass pass, const AttentionGeometry &g, float ratio,
                                DataType type) {
  if (!attentionHasEngine(g, type))
    return 0;
  const int64_t bytes = attentionBytes(pass, g, ratio, attentionParts(limit, pass, g, ratio));
  return bytes <= limit ? bytes : 0;
}

inline int64_t statisticsScratch(const Shape &x) {
  return sumScratch(Cut(x.elements() / std::max<int64_t>(1, x[1]), x[1], Cut::sumTasks), 2);
}

/// The sums that the epilogue of a ConvNorm's engine leaves to a kernel, after the engine's own workspace.
inline int64_t convNormSums(ConvPass pass, const Shape &y) {
  return pass == ConvPass::Forward ? scratchPart(2 * y[1] * static_cast<int64_t>(sizeof(float))) : 0;
}
/// What the engine of a ConvNorm may have, or our kernels where there is none.
inline int64_t convNormScratch(int64_t limit, ConvPass pass, const Shape &x, const Shape &w, const Shape &y) {
  const int64_t own = convNormSums(pass, y);
  return scratchPart(std::max(convolutionScratch(limit - own, pass, x, w, y, false, DataType::BF16) + own,
                              statisticsScratch(pass == ConvPass::Forward ? y : x)));
}

/// Ids that a block orders by itself; where there are more, runs of them are merged from one half of scratch into the
/// other.
constexpr int64_t idTile = 1024;
constexpr int64_t idScratch(int64_t count) {
  return (count > idTile ? 2 : 1) * count * static_cast<int64_t>(sizeof(int64_t));
}

constexpr int lossParts = 256;
/// Partial sums; after them how many targets count, where some may not.
constexpr int64_t lossPartials = lossParts * static_cast<int64_t>(sizeof(double));
constexpr int64_t lossScratch(bool ignores) { return lossPartials + (ignores ? scratchPart(sizeof(int64_t)) : 0); }

/// Partial sums of squares for the norm of a tensor; LAMB has those of two, and the ratio.
constexpr int normParts = 256;
constexpr int64_t normScratch = normParts * static_cast<int64_t>(sizeof(double));
constexpr int64_t lambScratch = 2 * normScratch + static_cast<int64_t>(sizeof(float));

/// r * h of the step before, for the second product of a Gru.
inline int64_t recurrenceScratch(const Recurrence::Geometry &g) {
  return g.cell == RecurrentCell::Gru ? scratchPart(g.batch * g.width * static_cast<int64_t>(sizeof(float))) : 0;
}

} // namespace cuda

} // namespace sluice
