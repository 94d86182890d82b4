// SPDX-License-Identifier: Apache-2.0
// What both targets' embeddings check and need.
#include "runtime/Embedding.h"

#include <stdexcept>

namespace sluice {

Embedding::Embedding(Node node, Shape table, Shape ids) : Kernel(node), rows(table[0]), count(ids.elements()) {
  if (table.rank < 1 || rows < 1)
    throw std::invalid_argument(std::string("embedding '") + node + "': a table of rank " + std::to_string(table.rank) +
                                " and " + std::to_string(rows) + " rows");
  columns = table.elements() / rows;
  workspace = bytesToOrder(count);
}

} // namespace sluice
