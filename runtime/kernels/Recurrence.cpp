// SPDX-License-Identifier: Apache-2.0
// What both targets' recurrences check.
#include "runtime/Recurrence.h"

#include <stdexcept>

namespace sluice {

Recurrence::Geometry recurrenceGeometry(const char *node, RecurrentCell cell, const Shape &gates, bool reverse) {
  const int64_t count = gatesOf(cell);
  if (gates.rank != 3 || gates.elements() < 1 || gates[2] % count)
    throw std::invalid_argument(std::string("recurrence '") + node + "': gates of rank " + std::to_string(gates.rank) +
                                " and " + std::to_string(gates.elements()) + " elements, not of " +
                                std::to_string(count) + " gates");
  return {cell, gates[0], gates[1], gates[2] / count, reverse};
}

} // namespace sluice
