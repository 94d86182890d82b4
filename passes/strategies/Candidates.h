// SPDX-License-Identifier: Apache-2.0
// Which tensors of a program are worth which action: what mixed draws its trials from.
#pragma once

#include "passes/strategies/Combine.h"

#include <set>

namespace sluice::planner {

/// The tensors that may be dropped, and how they come back.
struct Ranking {
  std::vector<int> order;                 ///< most bytes per second of re-running or rebuilding first
  std::vector<std::vector<int>> closures; ///< by buffer
  std::set<int> byInversion;              ///< those that are inverted
};

/// With `mayRecompute` by re-runs; by inversion where that is allowed and cheaper than a re-run, or, with
/// `preferInversion`, wherever it is possible. Without tensors below a millionth of all activations.
Ranking rankTensors(const Combiner &combiner, bool mayRecompute, bool preferInversion);

/// Position of the op before which the tensors are born that fill the link to the host for `share` of the forward half:
/// early tensors have the longest windows. The number of ops when the link has room for all.
int birthAfter(const Combiner &combiner, double share);

/// True when a tensor has a packed form on the device that may be used.
bool anyPacked(const Combiner &combiner);

/// The earliest tensors born at op `from` or later, as many as the codec stream packs in `share` of the forward half.
std::vector<int> packedWithin(const Combiner &combiner, double share, int from);

} // namespace sluice::planner
