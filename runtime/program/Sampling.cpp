// SPDX-License-Identifier: Apache-2.0
// Probabilities are summed in double from the likeliest token on, so that the answer does not depend on how many
// unlikely ones there are.

#include "runtime/program/Sampling.h"

#include "runtime/Errors.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace sluice {

/// The first of the highest scores.
static int64_t highest(const float *scores, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(scores[i]) || scores[i] == HUGE_VALF)
      throw LossNotFinite(text("the score of token ", i, " is ", scores[i], ", so that none can be chosen"));
  const float *found = std::max_element(scores, scores + count);
  if (count == 0 || *found == -HUGE_VALF)
    throw LossNotFinite("no token has a score above -inf, so that none can be chosen");
  return found - scores;
}

int64_t chooseToken(const float *scores, int64_t count, const Sampling &how, double draw) {
  const int64_t best = highest(scores, count);
  if (how.temperature == 0)
    return best;
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), int64_t{0});
  const auto kept = static_cast<std::ptrdiff_t>(how.topK > 0 ? std::min(how.topK, count) : count);
  std::partial_sort(tokens.begin(), tokens.begin() + kept, tokens.end(), [scores](int64_t a, int64_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  });
  tokens.resize(static_cast<size_t>(kept));
  const auto weightOf = [&](int64_t token) {
    return portableExp((static_cast<double>(scores[token]) - static_cast<double>(scores[best])) / how.temperature);
  };
  double all = 0, nucleus = 0;
  for (const int64_t token : tokens)
    all += weightOf(token);
  size_t drawn = 0; // tokens of the nucleus, one at least
  while (drawn < tokens.size() && (drawn == 0 || nucleus < how.topP * all))
    nucleus += weightOf(tokens[drawn++]);
  double below = 0;
  for (size_t i = 0; i < drawn; ++i) {
    below += weightOf(tokens[i]);
    if (draw * nucleus < below)
      return tokens[i];
  }
  return best; // rounding alone leads here
}

} // namespace sluice
