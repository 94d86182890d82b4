// SPDX-License-Identifier: Apache-2.0
// See PanelProduct.h. Compiled with contraction of a*b+c, as all products.
#include "runtime/host/PanelProduct.h"

#include "runtime/host/Parallel.h"
#include "runtime/host/Tile.h"

#include <algorithm>
#include <cassert>

namespace sluice {

int64_t PanelProduct::panels() const { return tile::panels(columns); }
int64_t PanelProduct::width() const { return tile::panelColumns(columns); }

void PanelProduct::pack(const float *b, int64_t depthStep, int64_t columnStep, float *to) const {
  const int64_t width = this->width();
  parallelFor(panels(), [&](int64_t panel) {
    const int64_t count = std::min(width, columns - panel * width);
    tile::pack(b + panel * width * columnStep, depthStep, columnStep, depth, count, width, to + panel * width * depth);
  });
}

void PanelProduct::run(const Rows &a, const float *packed, int64_t first, int64_t last, float *c, int64_t cStep,
                       bool add) const {
  assert(tile::form() == tile::compiled);
  constexpr int64_t depthAtOnce = 256, rowsAtOnce = 192;
  const int64_t width = this->width();
  for (int64_t row = 0; row < a.count; row += rowsAtOnce)
    for (int64_t begin = 0; begin < depth; begin += depthAtOnce) {
      const int64_t end = std::min(depth, begin + depthAtOnce);
      for (int64_t panel = first; panel < last; ++panel) {
        const tile::Factors f{
            a.data + row * a.step + begin, a.step, 1, packed + (panel * depth + begin) * width, width, end - begin};
        const int64_t column = panel * width;
        tile::multiply(f, std::min(rowsAtOnce, a.count - row), c + row * cStep + column, cStep,
                       std::min(width, columns - column), width > tile::lanes, add || begin > 0);
      }
    }
}

} // namespace sluice
