// SPDX-License-Identifier: Apache-2.0
// What lossy actions do to the gradients of a step: errors of single tensors, measured or usual ones, and their sum.
//
// The error of a tensor under a codec is |g' - g| / |g|, where g are the gradients of all trained parameters of a step
// as one vector, and g' the same with this tensor alone rounded for its backward readers. Errors of several tensors are
// added up as the root of the sum of their squares. That is right to first order (errors are small, so what one tensor
// adds does not depend on the others) where errors of different tensors are not correlated, as rounding errors of
// different values are not; if all pulled in one direction, the total could reach the plain sum.
#pragma once

#include "passes/planner/Plan.h"

namespace sluice::planner {

/// The error of one tensor that nobody measured: an equal part of what the codec usually does to the whole gradient in
/// a network with `tensors` tensors that could be packed. 0 for exact codecs; nothing where that is not known.
std::optional<double> usualError(Codec codec, size_t tensors);

/// What a decision adds: 0 for exact ones, infinite where the buffer has no error for it.
double errorOf(const Buffer &buffer, const Decision &decision);

/// The root of the sum of the squares of all decisions' errors.
double totalError(const Problem &problem, const Plan &plan);

/// Whether the plan keeps to the problem's error budget; always without one.
bool withinErrorBudget(const Problem &problem, const Plan &plan);

} // namespace sluice::planner
