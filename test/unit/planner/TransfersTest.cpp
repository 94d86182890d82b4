// SPDX-License-Identifier: Apache-2.0
// When copies out begin: from birth, beside the ops that read, the most urgent first.
#include "passes/planner/Transfers.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

namespace sluice::planner {

namespace {

/// The backward half reads the offloaded buffers, last-born first.
struct Row : test::SmallStep {
  std::vector<int> offloaded;

  using SmallStep::SmallStep;

  int buffer(bool leaves) {
    const int b = SmallStep::buffer(leaves);
    if (leaves)
      offloaded.push_back(b);
    return b;
  }

  /// Copies are placed in so much memory that nothing waits for any.
  Plan placed() {
    const int gradient = buffer(false);
    for (int pause = 0; pause < 20; ++pause)
      op(Phase::Backward, {}, {gradient});
    for (auto b = offloaded.rbegin(); b != offloaded.rend(); ++b)
      op(Phase::Backward, {*b}, {gradient});
    Plan plan = keepPlan(problem);
    for (int b : offloaded)
      plan.decisions[b].action = Action::Offload;
    EXPECT_TRUE(placeTransfers(problem, 1 << 20, plan));
    EXPECT_EQ(messageOf(checkPlan(problem, plan, 1 << 20)), "");
    EXPECT_EQ(messageOf(checkTimeline(problem, plan, simulate(problem, plan))), "");
    return plan;
  }

  std::vector<int> copiesOut(const Plan &plan) const {
    std::vector<int> order;
    for (const Event &e : simulate(problem, plan).events)
      if (e.what == Event::What::CopyOut)
        order.push_back(e.buffer);
    return order;
  }
};

} // namespace

TEST(Transfers, ACopyOutRunsBesideTheOpThatReads) {
  Row row(100);
  const int x = row.buffer(true), y = row.buffer(false);
  row.op(Phase::Forward, {}, {x});
  row.op(Phase::Forward, {x}, {y});
  row.op(Phase::Forward, {y}, {y});
  const Plan plan = row.placed();
  EXPECT_EQ(plan.decisions[x].absences[0].leaveAfter, 0);
  EXPECT_EQ(plan.decisions[x].absences[0].freeBefore, 2) << "the copy has ended when the reader has";
}

TEST(Transfers, AnOpThatOverwritesInPlaceIsAWriter) {
  Row row(100);
  const int x = row.buffer(true), y = row.buffer(false);
  row.op(Phase::Forward, {}, {x});
  row.op(Phase::Forward, {x}, {y});
  row.op(Phase::Forward, {x}, {x});
  row.op(Phase::Forward, {x}, {y});
  const Plan plan = row.placed();
  EXPECT_EQ(plan.decisions[x].absences[0].leaveAfter, 2);
  Plan early = plan;
  early.decisions[x].absences[0].leaveAfter = 1;
  EXPECT_NE(messageOf(checkPlan(row.problem, early, 1 << 20)).find("of which a copy was made"), std::string::npos);
}

TEST(Transfers, WhatIsThereAtTheStartLeavesAtTheStart) {
  Row row(100);
  const int x = row.buffer(true), y = row.buffer(false);
  row.op(Phase::Forward, {x}, {y});
  row.op(Phase::Forward, {y}, {y});
  const Plan plan = row.placed();
  EXPECT_EQ(plan.decisions[x].absences[0].leaveAfter, -1);
  EXPECT_EQ(plan.decisions[x].absences[0].freeBefore, 1);
}

TEST(Transfers, OfThoseThatMayLeaveTheOneThatIsReadNoMoreFirstLeavesFirst) {
  Row row(50); // a copy takes as long as two ops
  const int first = row.buffer(true), skip = row.buffer(true), next = row.buffer(true), y = row.buffer(false);
  row.op(Phase::Forward, {}, {first, skip});
  row.op(Phase::Forward, {first}, {next});
  row.op(Phase::Forward, {next}, {y});
  for (int pause = 0; pause < 6; ++pause)
    row.op(Phase::Forward, {y}, {y});
  row.op(Phase::Forward, {y, skip}, {y});
  const Plan plan = row.placed();
  EXPECT_EQ(row.copiesOut(plan), (std::vector<int>{first, next, skip}));
  EXPECT_EQ(plan.decisions[next].absences[0].leaveAfter, 1);
  EXPECT_EQ(plan.decisions[skip].absences[0].leaveAfter, 1) << "the stream serves in the order of issue";
}

TEST(Transfers, PackingInDeviceMemoryBeginsBehindTheLastReader) {
  Row row(100);
  const int x = row.buffer(true), y = row.buffer(false);
  row.op(Phase::Forward, {}, {x});
  row.op(Phase::Forward, {x}, {y});
  row.op(Phase::Forward, {y}, {y});
  row.problem.buffers[x].encodings = {{Codec::Zfp, 25, 1, 1}};
  Plan plan = row.placed();
  plan.decisions[x] = {};
  plan.decisions[x].action = Action::Compress;
  plan.decisions[x].codec = Codec::Zfp;
  ASSERT_TRUE(placeTransfers(row.problem, 1 << 20, plan));
  EXPECT_EQ(plan.decisions[x].absences[0].leaveAfter, 1) << "the packed form would lie beside what the reader needs";
}

/// One long copy out keeps the link busy while a copy back is issued, and then another copy out.
struct Crowd : test::SmallStep {
  Plan plan;

  Crowd() : SmallStep(20) { // a copy of `wide` takes six ops
    const int wide = buffer(true), early = buffer(true), late = buffer(true), y = buffer(false);
    problem.buffers[wide].bytes = 120;
    problem.buffers[early].bytes = problem.buffers[late].bytes = 10;
    op(Phase::Forward, {}, {wide, early, late});
    for (int pause = 0; pause < 9; ++pause)
      op(Phase::Backward, {}, {y});
    op(Phase::Backward, {wide, early, late}, {y});
    plan = keepPlan(problem);
    plan.decisions[wide] = {Action::Offload, {}, {{4, 8, 9, 10}}, ""};
    plan.decisions[early] = {Action::Offload, {}, {{1, 3, 5, 10}}, ""};
    plan.decisions[late] = {Action::Offload, {}, {{6, 8, 9, 10}}, ""};
  }

  /// Copies by their start: '-' in front of those that leave.
  std::string copies() const {
    std::string order;
    for (const Event &e : simulate(problem, plan).events)
      if (e.what == Event::What::CopyOut || e.what == Event::What::CopyIn)
        order += std::string(e.what == Event::What::CopyOut ? " -" : " ") + std::to_string(e.buffer);
    return order;
  }
};

TEST(Transfers, AStreamForBothDirectionsServesCopiesInTheOrderOfTheirIssue) {
  Crowd crowd;
  crowd.problem.link.duplex = 0;
  EXPECT_EQ(crowd.copies(), " -1 -0 -2 1 0 2") << "with a stream for each direction what leaves goes first";
  crowd.problem.home = Space::Storage;
  EXPECT_EQ(crowd.copies(), " -1 -0 1 -2 0 2");
  crowd.problem.link.duplex = 20; // no copy runs beside another for that
  EXPECT_EQ(crowd.copies(), " -1 -0 1 -2 0 2");
  const Timeline timeline = simulate(crowd.problem, crowd.plan);
  EXPECT_EQ(messageOf(checkTimeline(crowd.problem, crowd.plan, timeline)), "");
  for (const Event &e : timeline.events)
    EXPECT_EQ(e.stream == Stream::Storage, e.what == Event::What::CopyOut || e.what == Event::What::CopyIn);
  crowd.problem.home = Space::Host;
  EXPECT_NE(messageOf(checkTimeline(crowd.problem, crowd.plan, timeline)).find("is copied on storage"),
            std::string::npos);
}

TEST(Transfers, WhatGoesToStorageIsPackedInPieces) {
  Crowd crowd;
  crowd.problem.codecRates = {{Codec::Fp16, 1e9}, {Codec(Codec::Zvc, 0, 4096), 1e9}};
  crowd.plan.decisions[0].codec = Codec::Fp16;
  crowd.problem.home = Space::Storage;
  EXPECT_EQ(messageOf(checkPlan(crowd.problem, crowd.plan, 1 << 20)), "");
  crowd.plan.decisions[0].codec = Codec(Codec::Zvc, 0, 4096);
  EXPECT_NE(messageOf(checkPlan(crowd.problem, crowd.plan, 1 << 20))
                .find("'zvc:pool=4096' for the storage arena, whose copies cannot do that"),
            std::string::npos);
}

} // namespace sluice::planner
