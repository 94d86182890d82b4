// SPDX-License-Identifier: Apache-2.0
// --best and --patience: which evaluation of a run was the best so far, and how many came since.
#pragma once

#include "runtime/program/Metrics.h"

namespace sluice {

class Selection {
public:
  /// `patience`: evaluations without improvement after which training ends; none: it goes on.
  Selection(Metric metric, std::optional<int64_t> patience) : metric(metric), patience(patience) {}

  /// What a former part of the run has found.
  void restore(double value, int64_t step) {
    best = value;
    bestStep = step;
  }
  /// True when this is better than all before. What is not there, or no number, is not.
  bool take(const std::map<Metric, double> &values, int64_t step);
  bool isOver() const { return patience && waited >= *patience; }
  /// "accuracy did not get better than 0.91, of step 300, in 5 evaluations".
  std::string whyOver() const;

  const Metric metric;
  std::optional<double> best;
  int64_t bestStep = 0;

private:
  std::optional<int64_t> patience;
  int64_t waited = 0;
};

} // namespace sluice
