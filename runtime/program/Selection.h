// SPDX-License-Identifier: Apache-2.0
// --best and --patience: which evaluation of a run was the best so far, and how many came since.
#pragma once

#include "runtime/program/Metrics.h"

namespace sluice {

/// Where a selection stands; kept in checkpoints.
struct Standing {
  std::optional<double> best; ///< no value was a number yet
  int64_t bestStep = 0;
  int64_t waited = 0; ///< evaluations since the best one
};

class Selection {
public:
  /// `patience`: evaluations without improvement after which training ends; none: it goes on.
  Selection(Measure measure, std::optional<int64_t> patience) : measure(std::move(measure)), patience(patience) {}

  /// True when this is better than all before. What is not there, or no number, is not.
  bool take(const std::map<Measure, double> &values, int64_t step);
  bool isOver() const { return patience && standing.waited >= *patience; }
  /// "accuracy did not get better than 0.91, of step 300, in 5 evaluations".
  std::string whyOver() const;

  const Measure measure;
  Standing standing;

private:
  std::optional<int64_t> patience;
};

} // namespace sluice
