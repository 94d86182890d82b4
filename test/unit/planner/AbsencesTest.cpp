// SPDX-License-Identifier: Apache-2.0
// Buffers that leave more than once: which gaps they have, what is copied, and what the checker refuses.
#include "passes/planner/Check.h"
#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Transfers.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::planner {

namespace {

/// A network with a skip connection, eight ops in the middle of each half. `skip` is read by the first op after it, by
/// the last of the forward half, and by both of their backward ops; the gradient of the connection waits in between.
struct Skip : test::SmallStep {
  const int skip = buffer(true), gradient = buffer(false);

  Skip() : SmallStep(1000) {
    problem.buffers[gradient].offloadable = true;
    const int inner = buffer(false), outer = buffer(false);
    op(Phase::Forward, {}, {skip});
    op(Phase::Forward, {skip}, {inner});
    for (int i = 0; i < 8; ++i)
      op(Phase::Forward, {inner}, {inner});
    op(Phase::Forward, {skip, inner}, {outer}); // op 10
    op(Phase::Backward, {skip, outer}, {gradient});
    for (int i = 0; i < 8; ++i)
      op(Phase::Backward, {inner}, {inner});
    op(Phase::Backward, {skip, gradient}, {inner}); // op 20
  }

  /// `skip` is offloaded, and the gradient if asked for.
  Plan offloaded(bool both) const {
    Plan plan = keepPlan(problem);
    plan.decisions[skip].action = Action::Offload;
    if (both)
      plan.decisions[gradient].action = Action::Offload;
    return plan;
  }

  int copies(const Plan &plan, Event::What what) const {
    const Timeline timeline = simulate(problem, plan);
    EXPECT_EQ(messageOf(checkTimeline(problem, plan, timeline)), "");
    return std::count_if(timeline.events.begin(), timeline.events.end(),
                         [&](const Event &e) { return e.what == what; });
  }
};

constexpr Bytes roomy = 1 << 20;

} // namespace

TEST(Absences, TheLongestGapIsAfterTheForwardHalfAndOthersAreBetweenAnyTwoAccesses) {
  const Skip net;
  const Plan plan = net.offloaded(false);
  const auto longest = gapsOf(net.problem, plan, Gaps::Longest), every = gapsOf(net.problem, plan, Gaps::Every);
  EXPECT_TRUE(longest[net.skip].empty()) << "it is read at the end of the forward half and at once again";
  EXPECT_TRUE(longest[net.gradient].empty());
  ASSERT_EQ(every[net.skip].size(), 2u);
  EXPECT_EQ(std::pair(every[net.skip][0].first, every[net.skip][0].last), std::pair(2, 9));
  EXPECT_EQ(std::pair(every[net.skip][1].first, every[net.skip][1].last), std::pair(12, 19));
  ASSERT_EQ(every[net.gradient].size(), 1u);
  EXPECT_EQ(every[net.gradient][0].first, 12);
}

TEST(Absences, OneCopyServesEveryReturn) {
  Skip net;
  net.problem.ops[5].workspace = net.problem.ops[15].workspace = 300; // beside it there is room for what they touch
  Plan plan = net.offloaded(true);
  EXPECT_EQ(peakBytes(net.problem, expand(net.problem, keepPlan(net.problem))), 600);
  ASSERT_TRUE(placeTransfers(net.problem, 400, plan, {true, Gaps::Every}));
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 400)), "");
  ASSERT_EQ(plan.decisions[net.skip].absences.size(), 2u);
  EXPECT_TRUE(plan.decisions[net.skip].departs(0));
  EXPECT_FALSE(plan.decisions[net.skip].departs(1));
  EXPECT_EQ(net.copies(plan, Event::What::CopyOut), 2) << "one of the skip connection, one of its gradient";
  EXPECT_EQ(net.copies(plan, Event::What::CopyIn), 3);
  EXPECT_DOUBLE_EQ(simulate(net.problem, plan).makespan, 21) << "all of it hides";
}

TEST(Absences, ThoseThatMemoryHasRoomForAreGivenBack) {
  Skip net;
  net.problem.ops[15].workspace = 300;
  Plan plan = net.offloaded(true);
  ASSERT_TRUE(placeTransfers(net.problem, 400, plan, {true, Gaps::Every}));
  ASSERT_EQ(plan.decisions[net.skip].absences.size(), 1u);
  EXPECT_GT(plan.decisions[net.skip].absences[0].freeBefore, 10) << "it stays in the forward half";
  Plan roomyPlan = net.offloaded(true);
  ASSERT_TRUE(placeTransfers(net.problem, 600, roomyPlan, {true, Gaps::Every}));
  EXPECT_EQ(roomyPlan.decisions[net.skip].action, Action::Keep);
}

TEST(Absences, TheCheckerRefusesWhatDoesNotFitTogether) {
  const Skip net;
  Plan plan = net.offloaded(false);
  widenGaps(net.problem, plan, Gaps::Every);
  ASSERT_EQ(messageOf(checkPlan(net.problem, plan, roomy)), "");
  const auto error = [&](auto change) {
    Plan wrong = plan;
    change(wrong.decisions[net.skip]);
    return messageOf(checkPlan(net.problem, wrong, roomy));
  };
  const auto has = [](const std::string &text, const char *part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(error([](Decision &d) { d.absences[1].freeBefore = d.absences[0].neededBy; }), "leaves again"));
  EXPECT_TRUE(has(error([](Decision &d) { std::swap(d.absences[0], d.absences[1]); }), "leaves again"));
  EXPECT_TRUE(has(error([](Decision &d) { d.absences[1].leaveAfter = 5; }), "leaves again")) << "it is away then";
  EXPECT_TRUE(has(error([](Decision &d) { d.absences[0].neededBy = 11; }), "away from"));
  EXPECT_TRUE(has(error([](Decision &d) { d.absences[1].freeBefore = 11; }), "away from"));
  EXPECT_TRUE(has(error([](Decision &d) { d.action = Action::Keep; }), "allows none"));
  EXPECT_TRUE(has(error([](Decision &d) { d.action = Action::Compress; }), "allows one"));
  EXPECT_TRUE(has(error([](Decision &d) { d.absences.clear(); }), "one or more"));
  EXPECT_EQ(error([](Decision &d) { d.absences[1].leaveAfter = 10; }), "") << "a second copy is a waste, not wrong";
}

TEST(Absences, WhatForwardOpsReadOrBackwardOpsWroteIsNotRounded) {
  Skip net;
  net.problem.codecRates = {{Codec::Fp16, 1e6}};
  Plan gradient = keepPlan(net.problem);
  gradient.decisions[net.gradient].action = Action::Offload;
  widenGaps(net.problem, gradient, Gaps::Every);
  EXPECT_FALSE(mayRound(net.problem, gradient, net.gradient, Codec::Fp16));
  EXPECT_TRUE(mayRound(net.problem, gradient, net.gradient, Codec::Zvc));
  gradient.decisions[net.gradient].codec = Codec::Fp16;
  EXPECT_NE(messageOf(checkPlan(net.problem, gradient, roomy)).find("of the backward half writes"), std::string::npos);
  Plan plan = net.offloaded(false);
  widenGaps(net.problem, plan, Gaps::Every);
  EXPECT_FALSE(mayRound(net.problem, plan, net.skip, Codec::Fp16));
  plan.decisions[net.skip].codec = Codec::Fp16;
  EXPECT_NE(messageOf(checkPlan(net.problem, plan, roomy)).find("after it came back from fp16"), std::string::npos);
  plan.decisions[net.skip].absences.erase(plan.decisions[net.skip].absences.begin());
  EXPECT_TRUE(mayRound(net.problem, plan, net.skip, Codec::Fp16));
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, roomy)), "");
}

TEST(Absences, WhatIsPackedOnTheDeviceIsNotRoundedForForwardOpsEither) {
  Skip net;
  net.problem.buffers[net.skip].encodings = {{Codec::Int8, 25, 0.1, 0.1}, {Codec::Zvc, 50, 0.1, 0.1}};
  const auto refused = [&](Codec codec) {
    Plan plan = keepPlan(net.problem);
    plan.decisions[net.skip] = {Action::Compress, codec, {{1, 2, 9, 10}}, ""};
    return messageOf(checkPlan(net.problem, plan, roomy));
  };
  EXPECT_EQ(refused(Codec::Zvc), "");
  EXPECT_EQ(refused(Codec::Int8), "op 10 'op10' of the forward half uses buffer 'b0' after it came back from int8");
}

TEST(Absences, WhatIsRebuiltComesBackInTheBackwardHalf) {
  test::SmallStep net(1000);
  const int x = net.buffer(true), y = net.buffer(false), z = net.buffer(false);
  net.op(Phase::Forward, {}, {x});
  net.op(Phase::Forward, {x}, {y});
  net.op(Phase::Forward, {y}, {z});
  net.op(Phase::Forward, {z}, {z});
  net.op(Phase::Forward, {z}, {z});
  net.op(Phase::Backward, {z}, {z}); // op 5
  net.op(Phase::Backward, {z}, {z});
  net.op(Phase::Backward, {x, z}, {z});
  net.problem.buffers[x].inversion = Inversion{{y}, 0.1};
  net.problem.buffers[y].bytes = 300; // it would go soonest if x came back at op 3
  Plan plan = keepPlan(net.problem);
  plan.decisions[x].action = Action::Invert;
  placeInversions(net.problem, plan);
  ASSERT_EQ(plan.decisions[x].absences.size(), 1u);
  EXPECT_EQ(plan.decisions[x].absences[0].neededBy, 5);
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, roomy)), "");
  net.problem.ops[4].reads.push_back(x);
  plan.decisions[x].absences = {{1, 2, 2, 3}};
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, roomy)),
            "op 4 'op4' of the forward half uses buffer 'b0' after it came back from an inversion");
  net.problem.ops[4].reads.pop_back();
  net.problem.ops[5].writes.push_back(x);
  plan.decisions[x].absences = {{5, 6, 6, 7}};
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, roomy)),
            "op 5 'op5' of the backward half writes buffer 'b0', which then comes back from an inversion");
}

TEST(Absences, WhatIsEncodedStaysSo) {
  Skip net;
  net.problem.buffers[net.skip].encodings = {{Codec::Mask, 4, 0, 0.1}};
  const auto refused = [&](Absence absence) {
    Plan plan = keepPlan(net.problem);
    plan.decisions[net.skip] = {Action::Encode, Codec::Mask, {absence}, ""};
    return messageOf(checkPlan(net.problem, plan, roomy));
  };
  EXPECT_EQ(refused({10, 11, -1, 11}), "");
  EXPECT_EQ(refused({10, 11, -1, -1}), "");
  for (const Absence &absence : {Absence{10, 11, 99, 11}, {10, 12, -1, 11}, {10, 11, -1, 99}, {10, 11, 15, 20}})
    EXPECT_NE(refused(absence).find("is encoded for good before op 1"), std::string::npos) << refused(absence);
  net.problem.ops[15].reads = net.problem.ops[15].writes = {net.skip};
  EXPECT_EQ(refused({10, 11, -1, 11}), "op 15 'op15' writes buffer 'b0' at position 15, encoded since 11");
}

TEST(Absences, DecisionsSayNothingThatNobodyDoes) {
  const Skip net;
  const auto refused = [&](auto change) {
    Plan plan = keepPlan(net.problem);
    change(plan);
    return messageOf(checkPlan(net.problem, plan, roomy));
  };
  EXPECT_EQ(refused([&](Plan &p) { p.decisions[net.skip].codec = Codec::Zvc; }),
            "buffer 'b0' is packed with zvc, its action packs nothing");
  EXPECT_EQ(refused([&](Plan &p) { p.decisions[net.skip].action = Action::Recompute; }),
            "buffer 'b0' is to be computed again, and nothing that runs again writes it");
  EXPECT_EQ(refused([&](Plan &p) {
              p.decisions[net.skip].action = Action::Recompute;
              p.recomputes = {{11, {0}}};
            }),
            "");
  EXPECT_EQ(refused([](Plan &p) { p.recomputes = {{20, {0}}, {11, {0}}}; }),
            "recompute before op 11 stands behind that before op 20");
  EXPECT_EQ(refused([&](Plan &p) { p.alternatives.assign(net.problem.ops.size(), 1); }),
            "op 0 'op0' has 0 alternatives, plan names 1");
}

TEST(Absences, WhatIsWrittenInBetweenIsCopiedAgain) {
  Skip net;
  net.problem.ops[15].reads = net.problem.ops[15].writes = {net.gradient}; // adds to it in place
  Plan plan = keepPlan(net.problem);
  plan.decisions[net.gradient].action = Action::Offload;
  widenGaps(net.problem, plan, Gaps::Every);
  ASSERT_EQ(plan.decisions[net.gradient].absences.size(), 2u);
  EXPECT_EQ(plan.decisions[net.gradient].absences[1].leaveAfter, 15);
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, roomy)), "");
  EXPECT_EQ(net.copies(plan, Event::What::CopyOut), 2);
  plan.decisions[net.gradient].absences[1].leaveAfter = plan.decisions[net.gradient].absences[0].leaveAfter;
  EXPECT_NE(messageOf(checkPlan(net.problem, plan, roomy)).find("of which a copy was made"), std::string::npos);
}

TEST(Absences, ATimelineOfOpsAndBuffersThatAreNotThereIsRefused) {
  const Skip net;
  Plan plan = net.offloaded(false);
  widenGaps(net.problem, plan, Gaps::Every);
  const Timeline timeline = simulate(net.problem, plan);
  int changed = 0;
  for (size_t i = 0; i < timeline.events.size(); ++i) {
    const auto refused = [&](auto change) {
      Timeline wrong = timeline;
      change(wrong.events[i]);
      ++changed;
      return messageOf(checkTimeline(net.problem, plan, wrong));
    };
    const bool runs = timeline.events[i].what == Event::What::Run;
    const std::string what = runs ? "op " : "buffer ", count = runs ? " of 21" : " of 4";
    for (int index : {-1, 21, 1 << 30})
      EXPECT_NE(refused([&](Event &e) { (runs ? e.op : e.buffer) = index; }).find(what + std::to_string(index) + count),
                std::string::npos);
    for (int stream : {-1, streamCount})
      EXPECT_NE(refused([&](Event &e) {
                  e.stream = static_cast<Stream>(stream);
                }).find("on stream " + std::to_string(stream)),
                std::string::npos);
    if (runs)
      EXPECT_NE(refused([](Event &e) { e.stream = Stream::Codec; }).find("on stream 3 of 1"), std::string::npos);
    else
      EXPECT_NE(refused([](Event &e) { e.what = Event::What::Rerun; }).find("op "), std::string::npos);
  }
  EXPECT_EQ(changed, 6 * (21 + 3));
}

TEST(Absences, ATimelineWithoutACopyBackIsRefused) {
  const Skip net;
  Plan plan = net.offloaded(false);
  widenGaps(net.problem, plan, Gaps::Every);
  Timeline timeline = simulate(net.problem, plan);
  const auto back = std::find_if(timeline.events.begin(), timeline.events.end(),
                                 [](const Event &e) { return e.what == Event::What::CopyIn; });
  timeline.events.erase(back);
  EXPECT_NE(messageOf(checkTimeline(net.problem, plan, timeline)).find("copied out 1 times and back 1 times"),
            std::string::npos);
}

} // namespace sluice::planner
