// SPDX-License-Identifier: Apache-2.0
// Bayesian optimization of shares: numbers of at least 0 that add up to 1. J. Mockus, 1978, as in J. Snoek et al.,
// Practical Bayesian Optimization of Machine Learning Algorithms, NIPS 2012: a Gaussian process with Matern's kernel
// (5/2) over what is known, and next the candidate of the largest expected improvement.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::planner {

/// Looks for shares whose value is small. Deterministic: the same seed and values lead to the same shares.
class BayesianSearch {
public:
  /// `shares`: how many numbers; `first`: what is asked for before anything is known.
  BayesianSearch(int shares, std::vector<std::vector<double>> first, uint64_t seed = 1);

  /// The shares to try next. Complexity O(known^3 + candidates * known^2).
  std::vector<double> next();
  /// What came out of them. Infinities must not come: an infeasible choice has a value, too, worse than any other.
  void tell(std::vector<double> shares, double value);

private:
  std::vector<double> draw();

  const int shares;
  std::vector<std::vector<double>> first;
  std::vector<std::vector<double>> points;
  std::vector<double> values;
  uint64_t state;
};

} // namespace sluice::planner
