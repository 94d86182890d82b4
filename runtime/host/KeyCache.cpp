// SPDX-License-Identifier: Apache-2.0
// Rows copied to places, and attention of one row of each text and head: keys and values pass by once, in
// blocks whose scores stay in registers' reach; a task is a text's head.
#include "runtime/KeyCache.h"

#include "runtime/host/Parallel.h"
#include "runtime/host/RowIds.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {

namespace {

/// Neighbours of a sum have accumulators of their own, so that compilers may take several at once.
float dot(const float *a, const float *b, int64_t count) {
  constexpr int64_t wide = 16;
  float sums[wide] = {};
  int64_t i = 0;
  for (; i + wide <= count; i += wide)
    for (int64_t j = 0; j < wide; ++j)
      sums[j] += a[i + j] * b[i + j];
  float sum = 0;
  for (; i < count; ++i)
    sum += a[i] * b[i];
  for (const float each : sums)
    sum += each;
  return sum;
}

/// One text's head.
struct Head {
  const float *q, *k, *v, *mask, *kept; ///< masks null where there are none
  int64_t keys;                         ///< up to its place
  float *y;
};

void attend(const CachedAttention::Geometry &g, float scale, const Head &head) {
  constexpr int64_t atOnce = 64;
  float scores[atOnce], largest = -HUGE_VALF, sum = 0;
  std::fill_n(head.y, g.columns, 0.0F);
  for (int64_t first = 0; first < head.keys; first += atOnce) {
    const int64_t count = std::min(atOnce, head.keys - first);
    float top = largest;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t key = first + i;
      const float added = head.mask ? head.mask[key * g.mask.key] : 0;
      const bool hidden = head.kept && !(head.kept[key * g.kept.key] > 0);
      scores[i] = hidden ? added : scale * dot(head.q, head.k + key * g.depth, g.depth) + added;
      top = std::max(top, scores[i]);
    }
    if (top == -HUGE_VALF) // nothing is seen yet
      continue;
    const float shrunk = std::exp(largest - top);
    sum *= shrunk;
    for (int64_t c = 0; c < g.columns && shrunk != 1; ++c)
      head.y[c] *= shrunk;
    for (int64_t i = 0; i < count; ++i) {
      const float weight = std::exp(scores[i] - top), *row = head.v + (first + i) * g.columns;
      sum += weight;
      for (int64_t c = 0; c < g.columns; ++c)
        head.y[c] += weight * row[c];
    }
    largest = top;
  }
  for (int64_t c = 0; c < g.columns && sum != 0; ++c)
    head.y[c] /= sum;
}

/// Of a mask that broadcasts to [texts, heads, 1, keys].
CachedAttention::MaskSteps stepsOf(const char *node, const Shape &mask, const Shape &scores) {
  int64_t steps[4] = {}, step = 1;
  for (int back = 1; back <= mask.rank; ++back) {
    const int64_t extent = mask[mask.rank - back];
    if (back > 4 || (extent != 1 && extent != scores[4 - back]))
      throw std::invalid_argument(std::string("'") + node + "': a mask does not broadcast to one row of scores");
    steps[4 - back] = extent == 1 ? 0 : step;
    step *= extent;
  }
  return {steps[0], steps[1], steps[3]};
}

} // namespace

StoredRows::StoredRows(Node node, Shape x, Shape cache, Shape view)
    : Kernel(node), x(x), rows(cache[2]), steps{x[1] * x[2] * x[3], x[2] * x[3], x[3]} {
  if (x.rank != 4 || cache.rank != 4 || x[0] != cache[0] || x[1] != cache[1] || x[2] > cache[2] || x[3] != cache[3] ||
      (view.rank != 0 && view.rank != 4))
    throw std::invalid_argument(std::string("'") + node + "': rows do not fit the cache");
  if (view.rank == 4) {
    offset = view[0];
    std::copy_n(view.dims + 1, 3, steps);
  }
}

void StoredRows::run(Stream &stream, const Tensor &from, const Tensor &places, const Tensor &cache) const {
  const char *source = stream.data<char>(from);
  char *to = stream.data<char>(cache);
  const int64_t *at = stream.data<int64_t>(places);
  const size_t width = byteWidth(cache.type), bytes = static_cast<size_t>(x[3]) * width;
  stream.launch(node, "cache_rows", [this, source, to, at, width, bytes] {
    if (at)
      checkIds(node, at, x[0], rows);
    parallelRanges(x[0] * x[1], grainOf(x[2] * x[3]), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t text = i / x[1], head = i % x[1];
        for (int64_t row = 0; row < x[2]; ++row) {
          const int64_t first = offset + text * steps[0] + head * steps[1] + row * steps[2];
          std::memcpy(to + static_cast<size_t>(i * rows + (at ? at[text] : row)) * bytes,
                      source + static_cast<size_t>(first) * width, bytes);
        }
      }
    });
  });
}

CachedAttention::CachedAttention(Node node, Shape q, Shape k, Shape v, float scale, CachedAttentionOptions options)
    : Kernel(node), geometry{q[0], q[1], k[1], k[2], q[3], v[3], 0, q[1] * q[3], q[3], {}, {}}, scale(scale) {
  if (q.rank != 4 || k.rank != 4 || v.rank != 4 || q[2] != 1 || k[0] != q[0] || k[1] < 1 || q[1] % k[1] != 0 ||
      k[3] != q[3] || v[0] != k[0] || v[1] != k[1] || v[2] != k[2] ||
      (options.qView.rank != 0 && options.qView.rank != 4))
    throw std::invalid_argument(std::string("'") + node +
                                "': attention of queries, cached keys and values does not fit");
  if (options.qView.rank == 4)
    geometry.offset = options.qView[0], geometry.text = options.qView[1], geometry.head = options.qView[2];
  const Shape scores = {q[0], q[1], 1, k[2]};
  geometry.mask = stepsOf(node, options.mask, scores);
  geometry.kept = stepsOf(node, options.kept, scores);
}

void CachedAttention::run(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &places,
                          const Tensor &mask, const Tensor &kept, const Tensor &y) const {
  const Head all = {stream.data<float>(q),    stream.data<float>(k),    stream.data<float>(v),
                    stream.data<float>(mask), stream.data<float>(kept), 0,
                    stream.data<float>(y)};
  const int64_t *at = stream.data<int64_t>(places);
  stream.launch(node, "cached_attention", [this, all, at] {
    const Geometry &g = geometry;
    checkIds(node, at, g.texts, g.keys);
    parallelRanges(g.texts * g.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t text = i / g.heads, head = i % g.heads;
        const int64_t group = text * g.groups + head / (g.heads / g.groups);
        attend(g, scale,
               {all.q + g.offset + text * g.text + head * g.head, all.k + group * g.keys * g.depth,
                all.v + group * g.keys * g.columns,
                all.mask ? all.mask + text * g.mask.text + head * g.mask.head : nullptr,
                all.kept ? all.kept + text * g.kept.text + head * g.kept.head : nullptr, at[text] + 1,
                all.y + i * g.columns});
      }
    });
  });
}

} // namespace sluice
