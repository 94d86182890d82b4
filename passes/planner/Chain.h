// SPDX-License-Identifier: Apache-2.0
// The stage view of a step: stages in a row, each a forward and a backward op. Model of O. Beaumont, L. Eyraud-Dubois,
// A. Shilova, Optimal GPU-CPU Offloading Strategies for Deep Neural Network Training, Euro-Par 2020, Section 3.1, with
// indices 0..L and with what a stage saves besides its boundary. Sizes are real numbers, because chain files may hold
// any.
#pragma once

#include "passes/planner/Problem.h"
#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice::planner {

/// F_i turns x_i into x_(i+1); B_i needs x_i, x_(i+1), saved_i and y_(i+1), and makes y_i. While an op runs its inputs,
/// output and extra bytes are on the device. saved_i lives as long as x_(i+1) and is offloaded with it.
struct Chain {
  std::vector<Seconds> uF, uB;    ///< L+1 each
  std::vector<double> x, y;       ///< bytes, L+2 each
  std::vector<double> exF, exB;   ///< bytes, L+1 each
  std::vector<double> saved;      ///< bytes, L+1: what F_i saves for B_i besides x_i and x_(i+1)
  std::vector<OpKind> kinds;      ///< L+1, or empty when unknown
  double bandwidth = 0;           ///< bytes per second, one copy at a time; 0: nothing can be offloaded
  std::vector<std::string> names; ///< of the stages, or empty

  int last() const { return static_cast<int>(uF.size()) - 1; } ///< L
  /// |x_i| with what is saved along with it: what offloading x_i moves.
  double moved(int i) const { return x[i] + (i > 0 ? saved[i - 1] : 0); }
};

/// What `release` says of a copy: whole tensors free their bytes when the whole copy has ended and the last reader too
/// (what can be executed); partial ones free what has been copied (the paper's Problem 2).
enum class Release { Whole, Partial };

/// Refuses a chain that makes no sense, by the array and the entry.
Status checkChain(const Chain &chain);

/// Bytes during F_i and B_i when everything is kept (the paper's mF_i and mB_i), and their maximum M_peak.
double forwardBytes(const Chain &chain, int i);
double backwardBytes(const Chain &chain, int i);
double chainPeak(const Chain &chain);

/// Slack, in bytes, for comparing sums of sizes that were added in different orders.
double byteSlack(const Chain &chain);

/// Bytes below which no plan of whole tensors works: the largest op's inputs, output and extra.
double chainFloor(const Chain &chain);

/// Fewest bytes at which the tensors in `offloaded` (one flag per x_0..x_L) suffice.
double chainNeed(const Chain &chain, const std::vector<bool> &offloaded);

/// All compute, in seconds.
Seconds chainCompute(const Chain &chain);

/// Proposition 3: no schedule that keeps and offloads is shorter than all compute, nor than moving M_peak - memory out
/// and back.
Seconds chainBound(const Chain &chain, double memory);

/// The same when stages may also run again: of the bytes that are missing at the peak some cross the link and the
/// others cost re-runs of the stages that make them, cheapest bytes first. `offloads` false: re-runs only; infinite
/// when they cannot make room.
Seconds chainRecomputeBound(const Chain &chain, double memory, bool offloads);

} // namespace sluice::planner
