// SPDX-License-Identifier: Apache-2.0
// Calls of one name, their sums in each step, and the medians of those.

#include "runtime/program/OpTimes.h"

#include <algorithm>
#include <map>

namespace sluice {

namespace {

/// All calls that have one name.
struct NamedCalls {
  std::string node, op;
  std::vector<double> seconds; ///< of every call, in order
  std::vector<double> zeros;   ///< of all tensors that the calls wrote, in order

  size_t perStep(size_t steps) const { return std::max<size_t>(1, seconds.size() / steps); }
  /// Of every step, which has as many calls as any other.
  std::vector<double> sums(size_t steps) const {
    std::vector<double> result(steps);
    for (size_t i = 0; i < seconds.size(); ++i)
      result[i * steps / seconds.size()] += seconds[i];
    return result;
  }
  /// Of each tensor that a step writes, the mean of the steps.
  std::vector<double> zerosPerStep(size_t steps) const {
    std::vector<double> result(zeros.size() / steps);
    for (size_t i = 0; i < result.size() * steps; ++i)
      result[i % result.size()] += zeros[i] / static_cast<double>(steps);
    return result;
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// What medians of single ops leave out, because it disturbs now this one and now that, is part of every step: by so
/// much they are too small.
double stretch(const std::vector<NamedCalls> &ops, size_t steps) {
  std::vector<double> totals(steps);
  double medians = 0;
  for (const NamedCalls &op : ops) {
    const std::vector<double> sums = op.sums(steps);
    for (size_t i = 0; i < steps; ++i)
      totals[i] += sums[i];
    medians += median(sums);
  }
  return medians > 0 ? median(totals) / medians : 1;
}

std::vector<NamedCalls> opsIn(const std::vector<OpRecord> &records) {
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<NamedCalls> ops;
  for (const OpRecord &record : records) {
    if (record.bytes > 0)
      continue;
    const auto [place, fresh] = places.try_emplace({nameOf(record.node), record.op}, ops.size());
    if (fresh)
      ops.push_back({nameOf(record.node), record.op, {}, {}});
    NamedCalls &calls = ops[place->second];
    calls.seconds.push_back(record.end - record.start);
    calls.zeros.insert(calls.zeros.end(), record.zeros.begin(), record.zeros.end());
  }
  return ops;
}

} // namespace

std::vector<OpTimes> timesOfOps(const std::vector<OpRecord> &records, int64_t recorded) {
  const auto steps = static_cast<size_t>(std::max<int64_t>(1, recorded));
  const std::vector<NamedCalls> ops = opsIn(records);
  const double factor = stretch(ops, steps);
  std::vector<OpTimes> times;
  for (const NamedCalls &op : ops)
    times.push_back({op.node, op.op, factor * median(op.sums(steps)), op.perStep(steps), op.zerosPerStep(steps)});
  return times;
}

} // namespace sluice
