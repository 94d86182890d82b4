// SPDX-License-Identifier: Apache-2.0
// Equal values are no improvement: of several best evaluations the first one stays.

#include "runtime/program/Selection.h"

#include "runtime/Errors.h"

#include <cmath>

namespace sluice {

bool Selection::take(const std::map<Metric, double> &values, int64_t step) {
  const auto found = values.find(metric);
  const bool better = found != values.end() && std::isfinite(found->second) &&
                      (!best || (moreIsBetter(metric) ? found->second > *best : found->second < *best));
  waited = better ? 0 : waited + 1;
  if (better)
    restore(found->second, step);
  return better;
}

std::string Selection::whyOver() const {
  if (!best)
    return text(metricName(metric), " was no number in ", waited, " evaluations");
  return text(metricName(metric), " did not get better than ", *best, ", of step ", bestStep, ", in ", waited,
              " evaluations");
}

} // namespace sluice
