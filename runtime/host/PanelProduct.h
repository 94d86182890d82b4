// SPDX-License-Identifier: Apache-2.0
// Many small products with one right factor, which is packed once. Every element is one sum in the order of the depth,
// however rows and columns are cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

class PanelProduct {
public:
  PanelProduct(int64_t depth, int64_t columns) : depth(depth), columns(columns) {}

  /// Cuts of the columns, and what one has of them.
  int64_t panels() const;
  int64_t width() const;
  /// Floats of one packed factor.
  int64_t packedSize() const { return panels() * width() * depth; }
  /// A factor b [depth, columns] with these distances between neighbours as panels [panel][depth][column], the last one
  /// filled up with zeros. On all threads.
  void pack(const float *b, int64_t depthStep, int64_t columnStep, float *to) const;
  /// Rows that lie `step` apart.
  struct Rows {
    const float *data;
    int64_t step, count;
  };
  /// c[rows, columns of panels [first, last)] = (c +) a[rows, depth] b; c's rows lie cStep apart. On one thread.
  void run(const Rows &a, const float *packed, int64_t first, int64_t last, float *c, int64_t cStep, bool add) const;

private:
  int64_t depth, columns;
};

} // namespace sluice
