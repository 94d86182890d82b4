// SPDX-License-Identifier: Apache-2.0
// --schedule=plateau: the rate falls when a metric has stopped getting better, as torch.optim.lr_scheduler's
// ReduceLROnPlateau has it, with evaluations for its epochs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice {

/// The defaults are PyTorch's.
struct PlateauRule {
  std::string metric = "loss";
  double factor = 0.1; ///< of each reduction
  int64_t patience = 10, cooldown = 0;
  double threshold = 1e-4;
  bool relative = true; ///< a better value is better by a share of the best one
};

/// Where it stands; kept in checkpoints.
struct PlateauState {
  std::optional<double> best; ///< no value was a number yet
  int64_t waited = 0;         ///< evaluations without a better one
  int64_t cooling = 0;        ///< evaluations that do not count any more
  int64_t reductions = 0;     ///< so far
};

/// After an evaluation: `value` of the metric, of which more or less is better. True when the rate falls.
bool takePlateau(PlateauState &state, const PlateauRule &rule, double value, bool moreIsBetter);

} // namespace sluice
