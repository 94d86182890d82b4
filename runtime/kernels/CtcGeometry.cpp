// SPDX-License-Identifier: Apache-2.0
// What a CTC loss refuses.
#include "runtime/CtcLoss.h"

#include "runtime/Errors.h"

#include <stdexcept>

namespace sluice {

CtcGeometry ctcGeometry(const char *node, const Shape &x, int64_t labels, int64_t blank, bool zeroInfinity,
                        int64_t ignoreIndex) {
  if (x.rank != 3 || labels < 1 || blank < 0 || blank >= x[2])
    throw std::invalid_argument(text("CTC loss '", node, "': scores of rank ", x.rank, ", ", labels,
                                     " labels and the blank ", blank,
                                     ", expected [samples, steps, classes], a label and a class"));
  return {x[0], x[1], x[2], labels, blank, ignoreIndex, zeroInfinity};
}

} // namespace sluice
