// SPDX-License-Identifier: Apache-2.0
// The checker's own sum of errors.
#include "passes/planner/Check.h"

#include <cmath>
#include <cstdio>

namespace sluice::planner {

static std::string inDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// Null where nobody knows it.
static const double *knownError(const Buffer &buffer, const Decision &d) {
  if (d.action == Action::Invert)
    return buffer.inversion && buffer.inversion->error ? &*buffer.inversion->error : nullptr;
  for (const auto &[codec, error] : buffer.errors)
    if (codec == d.codec)
      return &error;
  return nullptr;
}

/// What rounds adds up, in squares, to the square of the budget at most; what nobody knows the error of is refused.
Status checkErrors(const Problem &problem, const Plan &plan) {
  if (!problem.errorBudget)
    return Success{};
  double squares = 0;
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    const Decision &d = plan.decisions[b];
    const bool copies = d.action == Action::Offload && d.codec && d.codec.kind != Codec::Zvc;
    if (d.action != Action::Invert && d.action != Action::Compress && !copies)
      continue;
    const double *known = knownError(problem.buffers[b], d);
    if (!known)
      return Error{"buffer '" + problem.buffers[b].name + "' has no error for '" +
                   (d.action == Action::Invert ? "invert" : codecName(d.codec)) + "', which an error budget of " +
                   inDigits(*problem.errorBudget) + " asks for"};
    squares += *known * *known;
  }
  if (squares > *problem.errorBudget * *problem.errorBudget * (1 + 1e-12))
    return Error{"errors add up to " + inDigits(std::sqrt(squares)) + ", the error budget is " +
                 inDigits(*problem.errorBudget)};
  return Success{};
}

} // namespace sluice::planner
