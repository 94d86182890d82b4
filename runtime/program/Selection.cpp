// SPDX-License-Identifier: Apache-2.0
// Equal values are no improvement: of several best evaluations the first one stays.

#include "runtime/program/Selection.h"

#include "runtime/Errors.h"

#include <cmath>

namespace sluice {

bool Selection::take(const std::map<Measure, double> &values, int64_t step) {
  const auto found = values.find(measure);
  const bool better = found != values.end() && std::isfinite(found->second) &&
                      (!standing.best || (moreIsBetter(measure.metric) ? found->second > *standing.best
                                                                       : found->second < *standing.best));
  if (better)
    standing = {found->second, step, 0};
  else
    ++standing.waited;
  return better;
}

std::string Selection::whyOver() const {
  if (!standing.best)
    return text(measure.name(), " was no number in ", standing.waited, " evaluations");
  return text(measure.name(), " did not get better than ", *standing.best, ", of step ", standing.bestStep, ", in ",
              standing.waited, " evaluations");
}

} // namespace sluice
