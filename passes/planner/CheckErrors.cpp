// SPDX-License-Identifier: Apache-2.0
// The checker's own sum of errors.
#include "passes/planner/Check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice::planner {

static std::string inDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// What rounds adds up, in squares, to the square of the budget at most; what nobody knows the error of is refused.
std::string checkErrors(const Problem &problem, const Plan &plan) {
  if (!problem.errorBudget)
    return "";
  double squares = 0;
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    const Decision &d = plan.decisions[b];
    const bool rounds = d.action == Action::Invert || d.action == Action::Compress ||
                        (d.action == Action::Offload && !d.codec.empty() && d.codec.compare(0, 3, "zvc") != 0);
    if (!rounds)
      continue;
    const std::string name = d.action == Action::Invert ? "invert" : d.codec;
    const auto known = std::find_if(problem.buffers[b].errors.begin(), problem.buffers[b].errors.end(),
                                    [&](const auto &error) { return error.first == name; });
    if (known == problem.buffers[b].errors.end())
      return "buffer '" + problem.buffers[b].name + "' has no error for '" + name + "', which an error budget of " +
             inDigits(*problem.errorBudget) + " asks for";
    squares += known->second * known->second;
  }
  if (squares > *problem.errorBudget * *problem.errorBudget * (1 + 1e-12))
    return "errors add up to " + inDigits(std::sqrt(squares)) + ", the error budget is " +
           inDigits(*problem.errorBudget);
  return "";
}

} // namespace sluice::planner
