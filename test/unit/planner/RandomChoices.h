// SPDX-License-Identifier: Apache-2.0
// Random choices of actions for a problem: what no strategy would do, but the checker must agree with the simulator on.
#pragma once

#include "passes/strategies/Combine.h"

#include <random>

namespace sluice::planner::test {

/// Spreads the problem's activations over the actions.
inline Choice randomChoice(const Problem &problem, unsigned seed) {
  std::mt19937 random(seed);
  const Recomputation recomputation(problem);
  Choice choice;
  choice.encode = random() % 2;
  choice.again = random() % 4 == 0;
  choice.offloadRest = random() % 2;
  const Codec codecs[] = {Codec::None, Codec::Fp16, Codec::Zvc, Codec::Int8, masked(Codec::Zfp)};
  choice.codec = codecs[random() % 5];
  choice.gaps = random() % 2 ? Gaps::Every : Gaps::Longest;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b) {
    if (!problem.buffers[b].activation) {
      if (choice.gaps == Gaps::Every && problem.buffers[b].offloadable && random() % 2)
        choice.offloaded.push_back(b);
      continue;
    }
    switch (random() % 5) {
    case 0:
      if (recomputation.possible(b) && !recomputation.closure({b}).empty())
        choice.recomputed.push_back(b);
      break;
    case 1:
      choice.offloaded.push_back(b);
      break;
    case 2:
      choice.compressed.push_back(b);
      break;
    case 3:
      choice.inverted.push_back(b);
      break;
    default:
      break;
    }
  }
  return choice;
}

} // namespace sluice::planner::test
