// SPDX-License-Identifier: Apache-2.0
// Local search among whole plans: which op runs again before which position, as often as is worth it, and who leaves.
// A choice of tensors (Combine.h) knows each of them as dropped or not, and its re-run as one, before its first reader.
#pragma once

#include "passes/strategies/Combine.h"

namespace sluice::planner {

/// The best plan that so many trials find by single changes of `start`'s; never worse than it. `choice` is the one that
/// `start` was made from: its packed forms and codecs stay. Random changes are drawn in the same way every time.
Attempt withMoves(const Combiner &combiner, const Choice &choice, Attempt start, double trials);

} // namespace sluice::planner
