// SPDX-License-Identifier: Apache-2.0
// See AttentionGeometry.h.
#include "runtime/AttentionGeometry.h"

#include <stdexcept>
#include <string>

namespace sluice {

static AttentionView viewOf(const char *node, const Shape &list, const AttentionGeometry &g, int64_t rows,
                            int64_t columns) {
  if (list.rank == 0)
    return g.rowMajor(rows, columns);
  if (list.rank != g.leading + 2)
    throw std::invalid_argument(std::string("attention '") + node + "' has a view of " + std::to_string(list.rank - 1) +
                                " steps for " + std::to_string(g.leading + 1) + " dimensions of rows");
  AttentionView view;
  view.offset = list[0];
  for (int i = 0; i < g.leading; ++i)
    view.steps[i] = list[i + 1];
  view.row = list[g.leading + 1];
  return view;
}

AttentionView AttentionGeometry::rowMajor(int64_t rows, int64_t columns) const {
  AttentionView view;
  view.row = columns;
  for (int64_t i = leading - 1, step = rows * columns; i >= 0; step *= extents[i--])
    view.steps[i] = step;
  return view;
}

static AttentionMask maskOf(const char *node, const Shape &shape, const AttentionGeometry &g) {
  AttentionMask mask;
  mask.present = shape.rank > 0;
  int64_t step = 1;
  for (int i = g.leading + 1, m = shape.rank - 1; m >= 0; --i, --m) {
    const int64_t extent = i < 0 ? 1 : i < g.leading ? g.extents[i] : i == g.leading ? g.rows : g.keys;
    if (i < 0 || (shape[m] != 1 && shape[m] != extent))
      throw std::invalid_argument(std::string("attention '") + node + "' has a mask of " + std::to_string(shape[m]) +
                                  " where it has " + std::to_string(extent));
    (i < g.leading ? mask.steps[i] : i == g.leading ? mask.row : mask.key) = shape[m] == 1 ? 0 : step;
    step *= shape[m];
  }
  return mask;
}

AttentionGeometry::AttentionGeometry(const char *node, const Shape &q, const Shape &k, const Shape &v,
                                     const Shape &mask, const Shape &kept, const AttentionViews &views) {
  bool fits = q.rank >= 2 && k.rank == q.rank && v.rank == q.rank && (mask.rank > 0 || kept.rank == 0);
  leading = fits ? q.rank - 2 : 0;
  for (int i = 0; i < leading; ++i) {
    fits = fits && k[i] == q[i] && v[i] == q[i];
    extents[i] = q[i];
    members *= q[i];
  }
  if (!fits || k[q.rank - 1] != q[q.rank - 1] || v[q.rank - 2] != k[q.rank - 2] || q.elements() < 1 || k.elements() < 1)
    throw std::invalid_argument(std::string("attention '") + node + "' has queries, keys and values that do not fit");
  rows = q[leading], depth = q[leading + 1], keys = k[leading], columns = v[leading + 1];
  this->q = viewOf(node, views.q, *this, rows, depth);
  this->k = viewOf(node, views.k, *this, keys, depth);
  this->v = viewOf(node, views.v, *this, keys, columns);
  y = viewOf(node, views.y, *this, rows, columns);
  this->mask = maskOf(node, mask, *this);
  this->kept = maskOf(node, kept, *this);
}

} // namespace sluice
