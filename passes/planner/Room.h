// SPDX-License-Identifier: Apache-2.0
// Which bytes are live at each position, and where memory has room for more: what strategies and placement go by when
// they take buffers away and give them back.
#pragma once

#include "passes/planner/Gaps.h"

namespace sluice::planner {

/// Begins with the live bytes of a plan, base and workspaces included; callers add what they decide on top of it.
class Room {
public:
  /// `memory` counts the base. A position is an op of the problem with all that runs again before it.
  Room(const Problem &problem, Bytes memory, const Plan &plan);

  bool fits() const { return over == 0; }
  /// The most that is live anywhere; the base of a problem without ops.
  Bytes peak() const;
  /// Whether one of the gaps has a position above the memory.
  bool relieves(const std::vector<Gap> &gaps) const;
  /// Takes bytes back where they fit all the while; false where they do not.
  bool giveBack(const std::vector<Gap> &gaps, Bytes bytes);
  /// Adds bytes, which may be negative, in gaps.
  void add(const std::vector<Gap> &gaps, Bytes bytes);

private:
  template <typename Holds> bool any(const std::vector<Gap> &gaps, Holds holds) const;

  const Bytes memory, base;
  std::vector<Bytes> live; ///< by position
  int over = 0;            ///< positions above the memory
};

} // namespace sluice::planner
