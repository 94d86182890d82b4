// SPDX-License-Identifier: Apache-2.0
// --evaluate: mean loss and metrics over all samples of a data set.
#pragma once

#include "runtime/program/Forward.h"
#include "runtime/program/Metrics.h"

#include <map>
#include <optional>

namespace sluice {

struct Evaluation {
  std::map<Metric, double> values; ///< of the metrics that are numbers, as far as there is anything to count
  Confusion confusion;             ///< empty unless it was asked for
  std::vector<Hits> hits;          ///< of each class, unless neither precision nor recall nor F1 was asked for
  int64_t samples = 0;
};

/// Nothing when a signal that InterruptGuard notes ended it. See forwardAll().
std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                   const MetricChoice &choice);

} // namespace sluice
