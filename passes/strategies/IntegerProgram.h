// SPDX-License-Identifier: Apache-2.0
// A minimization over rows of bounded sums, solved by COIN-OR's branch and cut.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace sluice::planner {

/// Built row by row, then solved as often as wanted.
class IntegerProgram {
public:
  using Sum = std::vector<std::pair<int, double>>; ///< (variable, coefficient); a variable may appear twice

  /// A variable between 0 and `upper`; returns its number.
  int variable(double cost, bool integer, double upper = 1);
  int variables() const { return static_cast<int>(costs.size()); }
  /// low <= sum <= high; either may be infinite.
  void row(const Sum &sum, double low, double high);
  void setCost(int variable, double cost) { costs[variable] = cost; }

  /// Values of an optimal solution, or of the best that `nodes` branch-and-bound nodes found; nothing when there is
  /// none, where `proved` says whether that is certain. Deterministic: one thread, and no limit on time.
  std::optional<std::vector<double>> solve(long nodes, bool *proved = nullptr) const;

private:
  struct Row {
    Sum sum;
    double low, high;
  };
  std::vector<double> costs, uppers;
  std::vector<bool> integers;
  std::vector<Row> rows;
};

} // namespace sluice::planner
