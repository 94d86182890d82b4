// SPDX-License-Identifier: Apache-2.0
// What all ranks do together in a plan: how long it takes, what runs beside it, and what the checker refuses.
#include "passes/planner/Check.h"
#include "passes/planner/Interconnect.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::planner {

namespace {

/// Two gradients, each summed over ranks; each updated behind the other's sum. Ops take a second.
struct Sums : test::SmallStep {
  int first = 0, second = 0; ///< ops that sum

  Sums() : SmallStep(1000) {
    const int a = buffer(false), b = buffer(false), y = buffer(false);
    op(Phase::Forward, {}, {y});
    op(Phase::Backward, {y}, {a});
    first = sum(a);
    op(Phase::Backward, {y}, {b});
    op(Phase::Backward, {y}, {y});
    second = sum(b);
    op(Phase::Update, {a}, {a});
    op(Phase::Update, {b}, {b});
  }

  int sum(int buffer) {
    op(Phase::Backward, {buffer}, {buffer});
    problem.ops.back().seconds = 0;
    problem.ops.back().summed = 4000;
    return static_cast<int>(problem.ops.size()) - 1;
  }

  Timeline run() const {
    const Timeline timeline = simulate(problem, keepPlan(problem));
    EXPECT_EQ(messageOf(checkTimeline(problem, keepPlan(problem), timeline)), "");
    return timeline;
  }
};

} // namespace

TEST(Exchanges, HideBehindWhatDoesNotTouchTheirBuffers) {
  Sums net;
  EXPECT_DOUBLE_EQ(net.run().makespan, 6);
  // Two ops run beside the first sum, none beside the second one, for which the first update has not long to wait.
  net.problem.ops[net.first].exchange = net.problem.ops[net.second].exchange = 1.5;
  EXPECT_DOUBLE_EQ(net.run().makespan, 6 + 0.5);
  // One after the other on one stream: the second begins when the first ends.
  net.problem.ops[net.first].exchange = 4;
  EXPECT_DOUBLE_EQ(net.run().makespan, 2 + 4 + 1.5 + 1);
  // What they take from compute.
  net.problem.ops[net.first].exchange = net.problem.ops[net.second].exchange = 1;
  net.problem.exchangeContention = 0.5;
  EXPECT_GT(net.run().makespan, 6.4);
}

TEST(Exchanges, AreChecked) {
  Sums net;
  net.problem.ops[net.first].exchange = net.problem.ops[net.second].exchange = 1.5;
  const Plan plan = keepPlan(net.problem);
  const auto refused = [&](const std::function<void(Event &)> &change) {
    Timeline wrong = net.run();
    for (Event &event : wrong.events)
      if (event.what == Event::What::Exchange && event.op == net.second)
        change(event);
    return messageOf(checkTimeline(net.problem, plan, wrong));
  };
  EXPECT_NE(refused([](Event &e) { e.end -= 1; }).find("the exchange of op 5 lasts 0.5 seconds"), std::string::npos);
  EXPECT_NE(refused([](Event &e) { e.start -= 0.5, e.end -= 0.5; }).find("compute comes to it at"), std::string::npos);
  EXPECT_NE(refused([](Event &e) { e.op = 4; }).find("the exchange of op 5 is not number 1"), std::string::npos);
  EXPECT_NE(refused([](Event &e) { e.stream = Stream::Codec; }).find("on stream 3"), std::string::npos);
  EXPECT_NE(refused([](Event &e) { e.end += 0.4; }).find("touches"), std::string::npos);
}

// In pieces of a megabyte: whole to one other rank, in shares to and fro to several.
TEST(Exchanges, TakeWhatTheirMessagesTake) {
  const Interconnect between{"", "", 1e6, 1e-3, 1e-4, 0};
  EXPECT_EQ(sumSeconds(between, 1000, 1), 0);
  EXPECT_NEAR(sumSeconds(between, 1000, 2), 1e-3 + 1e-4 + 1e-3, 1e-9);
  EXPECT_NEAR(sumSeconds(between, 1000, 3), 1e-3 + 2 * (1e-4 + 1e-3), 1e-9); // still whole
  EXPECT_NEAR(sumSeconds(between, 1 << 20, 4), 2 * (1e-3 + 3 * (1e-4 + 0.262144)), 1e-9);
  EXPECT_NEAR(sumSeconds(between, 3 << 20, 4), 3 * sumSeconds(between, 1 << 20, 4), 1e-9);
  EXPECT_NEAR(gatherSeconds(between, 4000, 4), 1e-3 + 3 * (1e-4 + 1e-3), 1e-9);
}

TEST(Exchanges, ShippedInterconnectsAreReadAndOthersAreRefused) {
  for (const auto &[name, text] : shippedInterconnects()) {
    const Result<Interconnect> between = loadInterconnect(name);
    ASSERT_TRUE(between) << name;
    EXPECT_EQ(between->name, name);
    EXPECT_FALSE(between->provenance.empty()) << name;
    EXPECT_GT(messageSeconds(*between, 1, 1), 0) << name;
  }
  const Result<Interconnect> unknown = loadInterconnect("carrier-pigeons");
  EXPECT_NE(unknown.error().find("no interconnect 'carrier-pigeons'"), std::string::npos);
}

TEST(Exchanges, VisitorsFromAllRanksTakeAsLongAsGathering) {
  const Interconnect between{"wire", "none", 1e9, 1e-5, 1e-6, 0.5};
  for (const int ranks : {2, 4, 64}) {
    const Link link = gatherLink(between, ranks);
    EXPECT_NEAR(link.latency + 1e6 / link.h2d, gatherSeconds(between, 1000000, ranks), 1e-12) << ranks << " ranks";
    EXPECT_NEAR(link.contention.value_or(0) * 1e6, 0.5 * 1e6 / link.h2d, 1e-12) << "of each second";
  }
  const Link alone = gatherLink(between, 1);
  EXPECT_LT(alone.latency + 1e12 / alone.h2d, 1e-5);
  // Set for another number of ranks, also where an op runs again.
  test::SmallStep net(1000);
  const int y = net.buffer(true), whole = net.buffer(false);
  net.problem.buffers[whole].visits = net.problem.buffers[whole].dropped = true;
  net.problem.visitorsHome = Space::Device;
  net.problem.visitorsLink = gatherLink(between, 2);
  net.op(Phase::Forward, {}, {y, whole});
  const double bytes = static_cast<double>(net.problem.buffers[whole].bytes);
  net.problem.ops[0].rerun =
      Rerun{1 + net.problem.visitorsLink.latency + bytes / net.problem.visitorsLink.h2d, 0, {}, {y}};
  setExchanges(net.problem, between, 8);
  EXPECT_NEAR(net.problem.ops[0].rerun->seconds, 1 + gatherSeconds(between, net.problem.buffers[whole].bytes, 8),
              1e-12);
}

} // namespace sluice::planner
