// SPDX-License-Identifier: Apache-2.0
// The stage view of an op-level problem: which stage a buffer belongs to, who reads it across a border, and the chain
// of Chain.h that chain strategies plan on.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Program.h"

#include <algorithm>
#include <vector>

namespace sluice::planner {

/// Of one problem, which it keeps a reference to.
class Stages {
public:
  /// With `most` > 0, neighbouring stages are grouped until there are at most that many.
  explicit Stages(const Problem &problem, int most = 0);

  int count() const { return static_cast<int>(saved.size()); }
  /// Dense number of the stage in which the buffer is born; -1 for buffers that no forward op writes.
  int of(int buffer) const { return born[buffer]; }
  int ofOp(int op) const { return dense[op]; }
  /// True when a forward op reads the buffer in a later group of `length` stages than the one it is born in: a border
  /// of such groups.
  bool crosses(int buffer, int length) const {
    return born[buffer] >= 0 && lastRead[buffer] / length > born[buffer] / length;
  }
  bool anyCrosses(const std::vector<int> &buffers, int length) const {
    return std::any_of(buffers.begin(), buffers.end(), [&](int b) { return crosses(b, length); });
  }
  /// Activations born in a stage: what offloading x_(i+1) moves.
  const std::vector<int> &activations(int stage) const { return saved[stage]; }

  /// x_(i+1) is what leaves stage i, saved_i the other activations born in it, x_0 is empty (batch slots are part of
  /// base); gradients and other temporaries of a stage are its extra bytes, so y is 0. Bytes exclude base. One link of
  /// the slower direction's rate.
  Chain chain() const;

  /// The same with every saved tensor as an x of its own: F_i makes all tensors of its stage, stages of no duration
  /// hand them on one by one, and B_i waits for all of them. So tensors leave and return singly, as whole ones; chain()
  /// moves what a stage saves as a unit.
  Chain tensorChain() const;

private:
  const Problem &problem;
  std::vector<int> born, lastRead; ///< per buffer
  std::vector<std::vector<int>> saved;
  std::vector<int> dense; ///< per op
};

} // namespace sluice::planner
