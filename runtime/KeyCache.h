// SPDX-License-Identifier: Apache-2.0
// The kernels of a decode step, which computes one token of each text of a batch: caches of what the tokens before it
// have left, and attention to them.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// Rows of x [texts, heads, R, depth] become rows of cache [texts, heads, rows, depth], both of one type: the first R
/// of each text and head, or with places, I64 [texts], where R is 1, the one at its text's place. A view, a list as
/// AttentionViews has it, says where x's elements stand in its tensor. A place outside [0, rows) ends the step with an
/// error.
class StoredRows : public Kernel {
public:
  StoredRows(Node node, Shape x, Shape cache, Shape view = {});
  void run(Stream &, const Tensor &x, const Tensor &places, const Tensor &cache) const;

private:
  Shape x;
  int64_t rows;                 ///< of the cache
  int64_t offset = 0, steps[3]; ///< of x: from one text, head and row to the next, in elements
};

/// Of a CachedAttention.
struct CachedAttentionOptions {
  Shape mask = {}, kept = {}; ///< rank 0: there is none
  Shape qView = {};           ///< see AttentionViews
  KERNEL_OPTION(withMask, mask)
  KERNEL_OPTION(withKept, kept)
  KERNEL_OPTION(withQView, qView)
};

/// y = softmax(scale * q k^T + mask) v of one row of each text and head, over the keys from 0 to its text's place: q
/// [texts, heads, 1, depth], k [texts, groups, keys, depth], v [texts, groups, keys, columns], y [texts, heads, 1,
/// columns], F32 and row-major, but for q with a view; heads / groups neighbours share keys and values. mask and kept
/// broadcast to [texts, heads, 1, keys] and mean what they mean to Attention. Keys pass by once, with sums in float
/// (M. Milakov, N. Gimelshein, arXiv:1805.02867). A place outside [0, keys) ends the step with an error.
class CachedAttention : public Kernel {
public:
  CachedAttention(Node node, Shape q, Shape k, Shape v, float scale, CachedAttentionOptions options = {});
  void run(Stream &, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &places, const Tensor &mask,
           const Tensor &kept, const Tensor &y) const;

  /// From one text, head and key to the next, in elements; 0 where it broadcasts.
  struct MaskSteps {
    int64_t text = 0, head = 0, key = 0;
  };
  struct Geometry {
    int64_t texts, heads, groups, keys, depth, columns;
    int64_t offset = 0, text, head; ///< of q
    MaskSteps mask, kept;
  };

private:
  Geometry geometry;
  float scale;
};

} // namespace sluice
