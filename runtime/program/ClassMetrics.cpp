// SPDX-License-Identifier: Apache-2.0
// Areas by ranks: the sum of the ranks of what is there, less the least that it could be, over all pairs (Mann and
// Whitney 1947).

#include "runtime/program/ClassMetrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice {

std::optional<double> meanOf(const std::vector<Hits> &hits, double (Hits::*value)() const) {
  double sum = 0;
  int64_t count = 0;
  for (const Hits &each : hits)
    if (each.occurs()) {
      sum += (each.*value)();
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

RocArea::RocArea(Kind kind, int64_t columns, bool probabilities)
    : kind(kind), columns(columns), probabilities(probabilities) {
  const size_t curves = kind == Kind::Classes && columns == 2 ? 1 : static_cast<size_t>(columns);
  scores.resize(curves);
  there.resize(curves);
}

void RocArea::addClass(const float *row, int64_t stride, int64_t right) {
  if (columns == 2) {
    scores[0].push_back(row[stride] - row[0]);
    there[0].push_back(right == 1);
    return;
  }
  double highest = row[0], sum = 0;
  for (int64_t k = 1; k < columns; ++k)
    highest = std::max(highest, static_cast<double>(row[k * stride]));
  for (int64_t k = 0; k < columns; ++k)
    sum += std::exp(static_cast<double>(row[k * stride]) - highest);
  for (int64_t k = 0; k < columns; ++k) {
    const double score = row[k * stride];
    scores[static_cast<size_t>(k)].push_back(
        static_cast<float>(probabilities ? score : std::exp(score - highest) / sum));
    there[static_cast<size_t>(k)].push_back(right == k);
  }
}

void RocArea::addLabels(const float *row, const float *labels, int64_t stride, float ignored) {
  for (size_t k = 0; k < scores.size(); ++k, row += stride, labels += stride)
    if (*labels != ignored) {
      scores[k].push_back(*row);
      there[k].push_back(*labels > 0.5f);
    }
}

static std::optional<double> areaOf(const std::vector<float> &scores, const std::vector<bool> &there) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  // NaN has no place in the order of numbers, which a sort needs: it is the lowest here.
  const auto scoreOf = [&](uint32_t i) { return std::isnan(scores[i]) ? -HUGE_VALF : scores[i]; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scoreOf(a) < scoreOf(b); });
  double ranks = 0, positives = 0;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    double here = 0;
    for (end = begin; end < order.size() && scoreOf(order[end]) == scoreOf(order[begin]); ++end)
      here += there[order[end]];
    ranks += here * (static_cast<double>(begin) + static_cast<double>(end) + 1) / 2; // the mean rank of a tie
    positives += here;
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  if (positives == 0 || negatives == 0)
    return std::nullopt;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

std::optional<double> RocArea::value() const {
  double sum = 0;
  int64_t count = 0;
  for (size_t k = 0; k < scores.size(); ++k)
    if (const std::optional<double> area = areaOf(scores[k], there[k])) {
      sum += *area;
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

void RSquared::add(const float *outputs, const float *targets) {
  for (size_t i = 0; i < sums.size(); ++i) {
    Column &column = sums[i];
    const double target = targets[i], difference = target - static_cast<double>(outputs[i]);
    column.shift = samples == 0 ? target : column.shift;
    column.sum += target - column.shift;
    column.squares += (target - column.shift) * (target - column.shift);
    column.differences += difference * difference;
  }
  ++samples;
}

std::optional<double> RSquared::value() const {
  if (samples < 2) // one has no deviation
    return std::nullopt;
  double mean = 0;
  for (const Column &column : sums) {
    const double deviations = column.squares - column.sum * column.sum / static_cast<double>(samples);
    mean += deviations > 0 || std::isnan(column.differences) ? 1 - column.differences / deviations
            : column.differences == 0                        ? 1
                                                             : 0;
  }
  return mean / static_cast<double>(sums.size());
}

} // namespace sluice
