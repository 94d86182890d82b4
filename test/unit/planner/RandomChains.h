// SPDX-License-Identifier: Apache-2.0
// Random chains for fuzzing, with small integers so that ties and exact fits are common.
#pragma once

#include "passes/planner/Chain.h"

#include <random>

namespace sluice::planner::test {

inline Chain randomChain(unsigned seed, int last) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<double>(random() % n); };
  const bool tinyEnd = random() % 3 == 0, extras = random() % 2 == 0, saves = random() % 3 == 0;
  Chain c;
  for (int i = 0; i <= last; ++i) {
    c.uF.push_back(1 + below(15));
    c.uB.push_back(1 + below(20));
    c.exF.push_back(extras ? below(10) : 0);
    c.exB.push_back(extras ? below(12) : 0);
    c.saved.push_back(saves ? below(15) : 0);
    c.kinds.push_back(static_cast<OpKind>(random() % 5));
  }
  for (int i = 0; i <= last + 1; ++i) {
    c.x.push_back(1 + below(25));
    c.y.push_back(1 + below(25));
  }
  if (tinyEnd)
    c.x.back() = c.y.back() = 0;
  c.bandwidth = 0.5 + below(4) / 2;
  return c;
}

} // namespace sluice::planner::test
