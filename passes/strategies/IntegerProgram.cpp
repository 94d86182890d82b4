// SPDX-License-Identifier: Apache-2.0
// Hands the program to Cbc by its C interface, column by column.
#include "passes/strategies/IntegerProgram.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

namespace sluice::planner {

int IntegerProgram::variable(double cost, bool integer, double upper) {
  costs.push_back(cost);
  uppers.push_back(upper);
  integers.push_back(integer);
  return variables() - 1;
}

/// Terms of one variable are added up, for the solver takes each variable once a row.
void IntegerProgram::row(const Sum &sum, double low, double high) {
  std::map<int, double> merged;
  for (auto [variable, coefficient] : sum)
    merged[variable] += coefficient;
  Row row{{}, low, high};
  for (auto [variable, coefficient] : merged)
    if (coefficient != 0)
      row.sum.push_back({variable, coefficient});
  rows.push_back(std::move(row));
}

// Rows become columns, as the solver has them. A relaxed program has no best solution of branch and bound, but the one
// of its relaxation, which counts only where it is proved optimal.
std::optional<std::vector<double>> IntegerProgram::solve(long nodes, bool *proved) const {
  std::vector<std::vector<std::pair<int, double>>> columns(costs.size());
  std::vector<double> low, high, values, lowers(costs.size(), 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    low.push_back(rows[r].low);
    high.push_back(rows[r].high);
    for (auto [variable, coefficient] : rows[r].sum)
      columns[variable].push_back({static_cast<int>(r), coefficient});
  }
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> indices;
  for (const auto &column : columns) {
    for (auto [row, coefficient] : column) {
      indices.push_back(row);
      values.push_back(coefficient);
    }
    starts.push_back(static_cast<CoinBigIndex>(indices.size()));
  }
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model *)> model(Cbc_newModel(), Cbc_deleteModel);
  Cbc_loadProblem(model.get(), variables(), static_cast<int>(rows.size()), starts.data(), indices.data(), values.data(),
                  lowers.data(), uppers.data(), costs.data(), low.data(), high.data());
  for (int v = 0; v < variables(); ++v)
    if (integers[v])
      Cbc_setInteger(model.get(), v);
  Cbc_setObjSense(model.get(), 1);
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "slogLevel", "0"); // of presolving, which has words of its own for standard output
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "maxNodes", std::to_string(nodes).c_str());
  Cbc_solve(model.get());
  const bool relaxed = std::none_of(integers.begin(), integers.end(), [](bool integer) { return integer; });
  const double *solution = !relaxed                           ? Cbc_bestSolution(model.get())
                           : Cbc_isProvenOptimal(model.get()) ? Cbc_getColSolution(model.get())
                                                              : nullptr;
  const bool none = Cbc_isProvenInfeasible(model.get());
  if (proved)
    *proved = none;
  if (!solution || none)
    return std::nullopt;
  return std::vector<double>(solution, solution + costs.size());
}

} // namespace sluice::planner
