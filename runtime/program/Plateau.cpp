// SPDX-License-Identifier: Apache-2.0
// The order of PyTorch's step(): better or not, cooling down, too long without.

#include "runtime/program/Plateau.h"

#include <cmath>

namespace sluice {

static bool isBetter(const PlateauState &state, const PlateauRule &rule, double value, bool moreIsBetter) {
  if (!std::isfinite(value))
    return false;
  if (!state.best)
    return true;
  const double best = *state.best;
  if (moreIsBetter)
    return value > (rule.relative ? best * (1 + rule.threshold) : best + rule.threshold);
  return value < (rule.relative ? best * (1 - rule.threshold) : best - rule.threshold);
}

bool takePlateau(PlateauState &state, const PlateauRule &rule, double value, bool moreIsBetter) {
  if (isBetter(state, rule, value, moreIsBetter)) {
    state.best = value;
    state.waited = 0;
  } else {
    ++state.waited;
  }
  if (state.cooling > 0) {
    --state.cooling;
    state.waited = 0;
  }
  if (state.waited <= rule.patience)
    return false;
  state.cooling = rule.cooldown;
  state.waited = 0;
  ++state.reductions;
  return true;
}

} // namespace sluice
