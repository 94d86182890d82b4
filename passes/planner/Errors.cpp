// SPDX-License-Identifier: Apache-2.0
// Sums of errors, see Errors.h.
#include "passes/planner/Errors.h"

#include <cmath>
#include <limits>

namespace sluice::planner {

/// Errors of independent roundings add up as squares: each of so many tensors may have a share 1 / sqrt(tensors) of the
/// error that a codec of all of them has.
std::optional<double> usualError(Codec codec, size_t tensors) {
  if (codec && !rounds(codec))
    return 0;
  double all = 0;
  switch (codec.kind) {
  case Codec::Fp16:
    all = 3e-4;
    break;
  case Codec::Bf16: // three bits fewer
    all = 8 * 3e-4;
    break;
  case Codec::Int8:
    all = 1e-2;
    break;
  case Codec::Zfp: // two more bits a value halve the error twice
    all = std::pow(2.0, 2 - codec.bits());
    break;
  default:
    return std::nullopt;
  }
  return all / std::sqrt(static_cast<double>(std::max<size_t>(1, tensors)));
}

/// Infinite where nobody knows an error: such a decision fits no error budget.
double errorOf(const Buffer &buffer, const Decision &decision) {
  if (factsOf(decision.action).absences == Absences::None)
    return 0;
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  if (factsOf(decision.action).rounds)
    return buffer.inversion ? buffer.inversion->error.value_or(unbounded) : unbounded;
  if (!rounds(decision.codec))
    return 0;
  for (const auto &[codec, error] : buffer.errors)
    if (codec == decision.codec)
      return error;
  return unbounded;
}

double totalError(const Problem &problem, const Plan &plan) {
  double squares = 0;
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    const double error = errorOf(problem.buffers[b], plan.decisions[b]);
    squares += error * error;
  }
  return std::sqrt(squares);
}

bool withinErrorBudget(const Problem &problem, const Plan &plan) {
  return !problem.errorBudget || totalError(problem, plan) <= *problem.errorBudget;
}

} // namespace sluice::planner
