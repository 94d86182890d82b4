// SPDX-License-Identifier: Apache-2.0
// --evaluate: mean loss and metrics over all samples of a data set.
#pragma once

#include "runtime/program/Forward.h"
#include "runtime/program/Metrics.h"

#include <map>
#include <optional>

namespace sluice {

struct Evaluation {
  std::map<Measure, double> values; ///< of the metrics that are numbers, as far as there is anything to count
  std::map<std::string, Confusion> confusions;   ///< of outputs by their labels, where they were asked for
  std::map<std::string, std::vector<Hits>> hits; ///< of their classes or labels, where MeasuredOutput::countsHits()
  int64_t samples = 0;
  int64_t leftOut = 0; ///< bad ones beside these, which count nowhere
};

/// Where bad samples were found on the way, it starts anew without them. Nothing when a signal that InterruptGuard
/// notes ended it. See forwardAll().
std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                   const MetricChoice &choice);

} // namespace sluice
