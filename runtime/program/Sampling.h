// SPDX-License-Identifier: Apache-2.0
// Which token a model's scores choose: the likeliest, or one that is drawn.
#pragma once

#include <cstdint>

namespace sluice {

/// How a token is drawn. Temperature, then the K likeliest, then of these the nucleus (Holtzman et al., The Curious
/// Case of Neural Text Degeneration, 2020).
struct Sampling {
  double temperature = 0; ///< probabilities are softmax(scores / temperature); 0: the highest score, nothing is drawn
  int64_t topK = 0;       ///< of so many likeliest tokens; 0: of all
  double topP = 1;        ///< of as few likeliest tokens as have this much probability together; in (0, 1]
};

/// The token of `count` scores, by a number of [0, 1) that is drawn evenly. Of equal scores the first stands before the
/// others, so that never more than K are drawn from. Scores of -inf are never chosen. Throws LossNotFinite where a
/// score is NaN or +inf, or all are -inf.
int64_t chooseToken(const float *scores, int64_t count, const Sampling &how, double draw);

} // namespace sluice
