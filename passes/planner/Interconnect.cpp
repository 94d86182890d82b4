// SPDX-License-Identifier: Apache-2.0
// Times of collectives, message by message.
#include "passes/planner/Interconnect.h"

#include "runtime/Collective.h"

#include <utility>

namespace sluice::planner {

static constexpr double floatBytes = sizeof(float);

Seconds messageSeconds(const Interconnect &between, double messages, double bytes) {
  return between.rate > 0 ? between.latency + messages * (between.overhead + bytes / between.rate) : 0;
}

Seconds sumSeconds(const Interconnect &between, Bytes bytes, int ranks) {
  if (ranks < 2)
    return 0;
  const double others = ranks - 1;
  Seconds seconds = 0;
  for (double left = static_cast<double>(bytes), piece = floatBytes * static_cast<double>(reducedPiece); left > 0;
       left -= piece) {
    const double count = std::min(left, piece);
    const bool whole = others * count <= count + floatBytes * mostRanks;
    seconds += whole ? messageSeconds(between, others, count) : 2 * messageSeconds(between, others, count / ranks);
  }
  return seconds;
}

Seconds gatherSeconds(const Interconnect &between, Bytes bytes, int ranks) {
  return ranks < 2 ? 0 : messageSeconds(between, ranks - 1, static_cast<double>(bytes) / ranks);
}

Link gatherLink(const Interconnect &between, int ranks) {
  constexpr double atOnce = 1e18;
  if (ranks < 2)
    return {atOnce, atOnce, atOnce, 0, 0.0};
  const double others = ranks - 1, rate = between.rate * ranks / others;
  return {rate, rate, rate, between.latency + others * between.overhead, between.contention / rate};
}

/// What runs again gathers again.
static void setVisitors(Problem &problem, const Link &link) {
  const Link before = std::exchange(problem.visitorsLink, link);
  const auto seconds = [](const Link &way, const Buffer &buffer) {
    return way.latency + static_cast<double>(buffer.bytes) / way.h2d;
  };
  for (Op &op : problem.ops)
    for (int b : op.rerun ? op.writes : std::vector<int>())
      if (problem.buffers[b].visits)
        op.rerun->seconds += seconds(link, problem.buffers[b]) - seconds(before, problem.buffers[b]);
}

void setExchanges(Problem &problem, const Interconnect &between, int ranks) {
  problem.exchangeContention = between.contention;
  for (Op &op : problem.ops)
    if (op.summed > 0 || op.gathered > 0)
      op.exchange = sumSeconds(between, op.summed, ranks) + gatherSeconds(between, op.gathered, op.among(ranks));
  if (visitFromRanks(problem))
    setVisitors(problem, gatherLink(between, ranks));
}

std::vector<Exchange> exchangesOf(const Problem &problem) {
  const int n = static_cast<int>(problem.ops.size());
  std::vector<int> nextTouch(problem.buffers.size(), n); // from the end of the step
  std::vector<Exchange> exchanges;
  for (int k = n - 1; k >= 0; --k) {
    const Op &op = problem.ops[k];
    int before = n;
    for (const auto *list : {&op.reads, &op.writes})
      for (int buffer : *list)
        before = std::min(before, nextTouch[buffer]);
    for (const auto *list : {&op.reads, &op.writes})
      for (int buffer : *list)
        nextTouch[buffer] = k;
    if (op.exchange > 0)
      exchanges.push_back({k, before});
  }
  return {exchanges.rbegin(), exchanges.rend()};
}

} // namespace sluice::planner
