// SPDX-License-Identifier: Apache-2.0
// A dense simplex for the planner's oracles: minimize c.x with A.x <= b, x >= 0. Big-M free two-phase method with
// Bland's rule, so it always ends; meant for a hundred variables, not for speed.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace sluice::planner::test {

class Simplex {
public:
  explicit Simplex(int variables) : n(variables), cost(variables, 0) {}

  void minimize(int variable, double weight = 1) { cost[variable] += weight; }
  /// sum of terms (variable, factor) <= bound
  void atMost(const std::vector<std::pair<int, double>> &terms, double bound) {
    std::vector<double> row(n, 0);
    for (auto [v, f] : terms)
      row[v] += f;
    rows.push_back(row);
    bounds.push_back(bound);
  }

  /// The minimum; infinity when nothing is feasible.
  double solve() const {
    const int m = rows.size();
    // Columns: variables, slacks, one artificial (as in Cormen et al.'s initial program), bound.
    std::vector<std::vector<double>> t(m + 1, std::vector<double>(n + m + 2, 0));
    std::vector<int> basis(m);
    int worst = -1;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j)
        t[i][j] = rows[i][j];
      t[i][n + i] = 1;
      t[i][n + m] = -1;
      t[i][n + m + 1] = bounds[i];
      basis[i] = n + i;
      if (worst < 0 || bounds[i] < bounds[worst])
        worst = i;
    }
    if (m > 0 && bounds[worst] < 0) {
      t[m][n + m] = 1; // minimize the artificial
      pivot(t, basis, worst, n + m);
      run(t, basis, n + m + 1);
      if (-t[m][n + m + 1] > 1e-7)
        return std::numeric_limits<double>::infinity();
      for (int i = 0; i < m; ++i)
        if (basis[i] == n + m) // leave the basis at value 0
          for (int j = 0; j < n + m; ++j)
            if (std::abs(t[i][j]) > 1e-9) {
              pivot(t, basis, i, j);
              break;
            }
    }
    for (auto &value : t[m])
      value = 0;
    for (int j = 0; j < n; ++j)
      t[m][j] = cost[j];
    for (int i = 0; i < m; ++i)
      if (basis[i] < n && t[m][basis[i]] != 0) {
        const double factor = t[m][basis[i]];
        for (size_t j = 0; j < t[m].size(); ++j)
          t[m][j] -= factor * t[i][j];
      }
    run(t, basis, n + m);
    return -t[m][n + m + 1];
  }

private:
  using Table = std::vector<std::vector<double>>;

  static void pivot(Table &t, std::vector<int> &basis, int row, int column) {
    const double p = t[row][column];
    for (double &v : t[row])
      v /= p;
    for (size_t i = 0; i < t.size(); ++i)
      if (static_cast<int>(i) != row && t[i][column] != 0) {
        const double factor = t[i][column];
        for (size_t j = 0; j < t[i].size(); ++j)
          t[i][j] -= factor * t[row][j];
      }
    basis[row] = column;
  }

  static void run(Table &t, std::vector<int> &basis, int columns) {
    const int m = basis.size(), last = t[0].size() - 1;
    while (true) {
      int column = -1;
      for (int j = 0; j < columns && column < 0; ++j)
        if (t[m][j] < -1e-9)
          column = j;
      if (column < 0)
        return;
      int row = -1;
      for (int i = 0; i < m; ++i)
        if (t[i][column] > 1e-9) {
          const double a = t[i][last] / t[i][column], b = row < 0 ? 0 : t[row][last] / t[row][column];
          if (row < 0 || a < b - 1e-12 || (a < b + 1e-12 && basis[i] < basis[row]))
            row = i;
        }
      if (row < 0)
        return; // unbounded: cannot happen with nonnegative costs
      pivot(t, basis, row, column);
    }
  }

  const int n;
  std::vector<double> cost;
  std::vector<std::vector<double>> rows;
  std::vector<double> bounds;
};

} // namespace sluice::planner::test
