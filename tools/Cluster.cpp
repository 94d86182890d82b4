// SPDX-License-Identifier: Apache-2.0
// One plan, simulated for each number of ranks: what changes with it are the messages and, of shared states, the base.
#include "tools/Cluster.h"

#include "passes/analysis/Storages.h"
#include "passes/planner/Interconnect.h"
#include "passes/planner/Simulate.h"
#include "runtime/Printable.h"
#include "runtime/Ranks.h"
#include "tools/Failure.h"
#include "tools/PlanModel.h"

#include <cstdio>
#include <iostream>
#include <set>

namespace sluice {

using namespace planner;

namespace {

/// A step of so many ranks.
struct Point {
  int ranks = 0;
  Seconds step = 0;
  Seconds exchange = 0; ///< of the communication stream
  Seconds exposed = 0;  ///< of the step, that compute does not hide
  Bytes memory = 0;
  int64_t messages = 0; ///< that a rank sends
  Bytes sent = 0;       ///< by a rank
};

/// Slots that hold a rank's shares.
Bytes bytesOfShares(const std::vector<int64_t> &elements, int ranks) {
  Bytes bytes = 0;
  for (const int64_t count : elements)
    bytes += slotBytes(shareOf(count, 0, ranks).count * static_cast<int64_t>(sizeof(float)));
  return bytes;
}

class Prediction {
public:
  Prediction(const DriverOptions &options, const ModelProblem &model, const Plan &plan, const Interconnect &between)
      : options(options), model(model), plan(plan), between(between) {
    alone = at(1).step;
  }

  Point at(int ranks) const {
    Problem problem = model.problem;
    setExchanges(problem, between, ranks);
    const Timeline timeline = simulate(problem, plan);
    Point point;
    point.ranks = ranks;
    point.step = timeline.makespan;
    for (const Op &op : problem.ops) {
      point.exchange += op.exchange;
      const Bytes pieces = (op.summed + pieceBytes - 1) / pieceBytes;
      const int among = op.among(ranks); // of what is gathered
      point.messages += 2 * pieces * (ranks - 1) + (op.gathered > 0 ? among - 1 : 0);
      point.sent += 2 * op.summed / ranks * (ranks - 1) + op.gathered / among * (among - 1);
    }
    addGathered(problem, point);
    point.exposed = std::max(0.0, point.step - alone);
    point.memory = plan.arenaBytes;
    if (!model.shared.empty())
      point.memory += bytesOfShares(model.shared, ranks) - bytesOfShares(model.shared, static_cast<int>(leastRanks()));
    return point;
  }

  void print() const {
    std::cout << printable(options.model) << ", " << options.spec.batch.value_or(0) << " samples a rank, "
              << printable(model.device) << ", " << printable(between.name) << ", strategy "
              << printable(options.pipeline.strategy) << ", predicted by simulation, not measured\n";
    std::cout << "interconnect: " << printable(between.provenance) << "\n";
    std::printf("%6s %12s %12s %12s %12s %14s  %s\n", "ranks", "step ms", "messages ms", "not hidden", "of linear",
                "bytes a rank", "limited by");
    std::set<int> counts{options.pipeline.ranks};
    for (int ranks = 1; ranks <= mostRanks; ranks *= 2)
      counts.insert(ranks);
    for (const int ranks : counts) {
      if (ranks > 1 && (ranks < leastRanks() || ranks % std::max(1, options.spec.normRanks) != 0))
        continue;
      const Point point = at(ranks);
      std::printf("%6d %12.3f %12.3f %11.1f%% %11.1f%% %14lld  %s\n", ranks, 1e3 * point.step, 1e3 * point.exchange,
                  100 * point.exposed / point.step, 100 * alone / point.step, static_cast<long long>(point.memory),
                  limit(point).c_str());
    }
    std::fflush(stdout);
    advise();
  }

private:
  /// Parameters that come from the shares of all ranks, each for every op that reads it.
  static void addGathered(const Problem &problem, Point &point) {
    if (!visitFromRanks(problem))
      return;
    for (const Buffer &buffer : problem.buffers)
      if (buffer.visits) {
        point.exchange += problem.visitorsLink.latency + static_cast<double>(buffer.bytes) / problem.visitorsLink.h2d;
        point.messages += point.ranks - 1;
        point.sent += buffer.bytes / point.ranks * (point.ranks - 1);
      }
  }

  static constexpr Bytes pieceBytes = Bytes{1} << 20;
  int64_t leastRanks() const { return std::max<int64_t>(1, options.spec.shares); }

  /// What a step waits for most.
  std::string limit(const Point &point) const {
    if (point.ranks == 1 || point.exposed < 0.05 * point.step)
      return "compute";
    const Seconds bytes = static_cast<double>(point.sent) / between.rate,
                  messages = static_cast<double>(point.messages) * between.overhead,
                  latency = std::max(0.0, point.exchange - bytes - messages);
    if (bytes >= messages && bytes >= latency)
      return "bytes between ranks";
    return messages >= latency ? "number of messages" : "latency of messages";
  }

  /// What ranks could share besides.
  std::string sharing() const {
    const std::string ranks = ",ranks=" + std::to_string(options.pipeline.ranks);
    const std::string states =
        options.spec.shares > 0 ? "" : "--shard=states" + ranks + " shares the optimizer's states, ";
    return options.spec.sharesParameters ? "" : states + "--shard=parameters" + ranks + " the parameters as well; ";
  }

  /// What to combine, as far as memory says it.
  void advise() const {
    const Point point = at(options.pipeline.ranks);
    if (model.memory > 0 && point.memory > model.memory)
      std::cout << "a rank needs " << point.memory << " bytes, the device has " << model.memory << ": " << sharing()
                << "--memory-budget=" << model.memory << " plans offloading and recomputation\n";
    if (point.exposed > 0.2 * point.step)
      std::cout << "messages take " << static_cast<int>(100 * point.exposed / point.step)
                << " % of a step that compute does not hide: more samples a rank, or several batches a step "
                   "(--accumulate), send less often\n";
  }

  const DriverOptions &options;
  const ModelProblem &model;
  const Plan &plan;
  const Interconnect &between;
  Seconds alone = 0; ///< a step of one rank
};

} // namespace

int predictCluster(const DriverOptions &options) {
  const Result<Interconnect> between = loadInterconnect(options.pipeline.interconnect);
  if (!between)
    return fail("sluicec", 1, between.error());
  PlannedModel compiled(options);
  const ModelProblem model = compiled.problem();
  if (!model.error.empty())
    return fail("sluicec", model.status, model.error, model.notes);
  const CompiledPlan chosen = compiled.plan(model.problem);
  if (!chosen.error.empty())
    return fail("sluicec", chosen.status, chosen.error, chosen.notes);
  Prediction(options, model, chosen.plan, *between).print();
  return 0;
}

} // namespace sluice
