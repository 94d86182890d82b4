// SPDX-License-Identifier: Apache-2.0
// Sums of errors, see Errors.h.
#include "passes/planner/Errors.h"

#include <cmath>
#include <limits>

namespace sluice::planner {

std::optional<double> usualError(const std::string &codec, size_t tensors) {
  const CodecFacts *facts = findCodec(codec);
  const std::optional<Codec> parsed = parseCodec(codec);
  if (!facts)
    return std::nullopt;
  if (facts->exact)
    return 0;
  double all = 0;
  switch (parsed ? parsed->kind : Codec::None) {
  case Codec::Fp16:
    all = 3e-4;
    break;
  case Codec::Int8:
    all = 1e-2;
    break;
  case Codec::Zfp: // two more bits a value halve the error twice
    all = std::pow(2.0, 2 - parsed->rate);
    break;
  default:
    return std::nullopt;
  }
  return all / std::sqrt(static_cast<double>(std::max<size_t>(1, tensors)));
}

double errorOf(const Buffer &buffer, const Decision &decision) {
  if (decision.action == Action::Keep || decision.action == Action::Recompute)
    return 0;
  const CodecFacts *facts = findCodec(decision.codec);
  if (decision.action != Action::Invert && (!facts || facts->exact))
    return 0;
  const std::string name = decision.action == Action::Invert ? "invert" : decision.codec;
  for (const auto &[codec, error] : buffer.errors)
    if (codec == name)
      return error;
  return std::numeric_limits<double>::infinity();
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
