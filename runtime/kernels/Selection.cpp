// SPDX-License-Identifier: Apache-2.0
// What both targets' selections check.
#include "runtime/Selection.h"

#include <stdexcept>

namespace sluice {

namespace {

/// Extent of a row.
int64_t rowOf(const char *node, const Shape &x) {
  if (x.rank < 1 || x.elements() < 1)
    throw std::invalid_argument(std::string("selection '") + node + "': a tensor of rank " + std::to_string(x.rank) +
                                " and " + std::to_string(x.rank < 1 ? 0 : x.elements()) + " elements has no rows");
  return x[x.rank - 1];
}

} // namespace

Top::Top(Node node, Shape x, int64_t count, bool smallest, bool last)
    : Kernel(node), columns(rowOf(node, x)), count(count), smallest(smallest), last(last) {
  rows = x.elements() / columns;
  if (count < 1 || count > columns)
    throw std::invalid_argument(std::string("selection '") + node + "': the best " + std::to_string(count) + " of " +
                                std::to_string(columns) + " elements");
}

Pick::Pick(Node node, Shape x, Shape ids) : Kernel(node), columns(rowOf(node, x)), count(rowOf(node, ids)) {
  rows = x.elements() / columns;
  if (ids.elements() / count != rows)
    throw std::invalid_argument(std::string("selection '") + node + "': ids for " +
                                std::to_string(ids.elements() / count) + " rows of " + std::to_string(rows));
}

} // namespace sluice
