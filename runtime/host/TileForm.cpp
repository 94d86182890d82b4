// SPDX-License-Identifier: Apache-2.0
// See TileForm.h.
#include "runtime/host/TileForm.h"

#include "runtime/host/Tile.h"

namespace sluice::tile {

static Form current = compiled;

Form form() { return current; }

PlannedFor::PlannedFor(int level) {
  if (level)
    current = formOf(level);
}

PlannedFor::~PlannedFor() { current = compiled; }

} // namespace sluice::tile
