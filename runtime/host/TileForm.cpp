// SPDX-License-Identifier: Apache-2.0
// See TileForm.h.
#include "runtime/host/TileForm.h"

#include "runtime/host/Tile.h"

namespace sluice::tile {

static Form current = compiled;
static bool vendorKnows = true;

Form form() { return current; }

bool asksVendor() { return vendorKnows; }

PlannedFor::PlannedFor(int level) {
  if (level)
    current = formOf(level);
  vendorKnows = !isForeign(level);
}

PlannedFor::~PlannedFor() {
  current = compiled;
  vendorKnows = true;
}

} // namespace sluice::tile
