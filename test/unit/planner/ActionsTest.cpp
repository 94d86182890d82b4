// SPDX-License-Identifier: Apache-2.0
// What compressing, inverting, converting copies and other re-runs mean: random mixtures against the checkers, and one
// small step by hand for each.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/RandomChoices.h"
#include "test/unit/planner/RandomProblems.h"
#include "test/unit/planner/TwoLayers.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::planner {

TEST(Actions, RandomMixturesAgreeWithTheCheckers) {
  std::set<Action> seen;
  bool fp16 = false, rerun = false;
  int again = 0; // buffers that leave more than once
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.forwardOps = 3 + seed % 20;
    shape.codecs = true;
    Problem p = test::randomProblem(seed, shape);
    for (Buffer &buffer : p.buffers)
      buffer.offloadable = true; // gradients, too
    ASSERT_EQ(messageOf(checkProblem(p)), "");
    const Options options = everythingAllowed({});
    const Choice choice = test::randomChoice(p, seed);
    const Bytes least = Combiner(p, 0, options).attempt(choice).peak, keep = peakBytes(p, expand(p, keepPlan(p)));
    const Bytes memory = seed % 3 == 0 || least > keep ? keep : least;
    const Attempt attempt = Combiner(p, memory, options).attempt(choice);
    if (!attempt.feasible)
      continue;
    ASSERT_EQ(messageOf(checkPlan(p, attempt.plan, memory)), "");
    const Timeline timeline = simulate(p, attempt.plan);
    ASSERT_EQ(messageOf(checkTimeline(p, attempt.plan, timeline)), "");
    ASSERT_GE(timeline.makespan, actionBound(p, memory, allActions()) * (1 - 1e-9));
    for (const Decision &d : attempt.plan.decisions) {
      seen.insert(d.action);
      fp16 |= d.action == Action::Offload && d.codec == Codec::Fp16;
      again += d.absences.size() > 1;
    }
    for (const Recompute &r : attempt.plan.recomputes)
      for (int op : r.ops)
        rerun |= p.ops[op].rerun.has_value();
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_TRUE(fp16);
  EXPECT_TRUE(rerun);
  EXPECT_GT(again, 20);
}

TEST(Bounds, OfStepsThatTakeNoTimeIsZero) {
  EXPECT_EQ(splitBound(0, 0, 10, {{10, 0.1, 0.1}}, {{10, 0}}), 0) << "nothing needs to cross the link";
}

TEST(Bounds, FloorCountsFormsThatAreReadAsTheyAre) {
  Problem p = twoLayers();
  EXPECT_EQ(memoryFloor(p), 400); // the backward of f touches four tensors
  p.buffers[0].encodings = p.buffers[1].encodings = {{Codec::Fp16, 50, 1, 1}};
  EXPECT_EQ(memoryFloor(p), 400);
  p.buffers[1].encodings.push_back({Codec::Mask, 10, 1, 0});
  EXPECT_EQ(memoryFloor(p), 310);
}

TEST(Actions, CompressionRunsOnTheCodecStreamAndItsFormIsLiveWhileTheRawBytesMove) {
  Problem p = twoLayers();
  p.buffers[0].encodings = {{Codec::Zfp, 20, 3, 5}};
  const Plan plan = away(p, Action::Compress, Codec::Zfp);
  const Timeline timeline = simulate(p, plan);
  EXPECT_EQ(messageOf(checkPlan(p, plan, 1000)), "");
  EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
  // load f 0..2, packing 2..5 before g may take the bytes, g 5..6, bg 6..7, unpacking 7..12, bf 12..13.
  EXPECT_DOUBLE_EQ(timeline.makespan, 13);
  const std::vector<Bytes> live = liveBytes(p, expand(p, plan));
  EXPECT_EQ(live, (std::vector<Bytes>{100, 220, 220, 320, 420}));
}

TEST(Actions, CodecsTakeTheirContentionFromWhatRunsBesideThem) {
  Problem p = twoLayers();
  p.buffers[0].encodings = {{Codec::Zfp, 20, 1, 2}};
  p.ops[2].seconds = 4;
  Plan plan = away(p, Action::Compress, Codec::Zfp);
  plan.decisions[0].absences[0].freeBefore = 3;
  // load f 0..2, packing 2..3 beside g, which takes that much longer than 2..6, bg, unpacking 2 seconds beside nothing,
  // bf.
  Timeline timeline;
  for (double contention : {0.0, 0.5, 1.0}) {
    p.codecContention = contention;
    timeline = simulate(p, plan);
    EXPECT_EQ(messageOf(checkProblem(p)), "");
    EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
    EXPECT_DOUBLE_EQ(timeline.makespan, 10 + contention);
    EXPECT_DOUBLE_EQ(timeline.busy, 8 + contention);
  }
  p.codecContention = 0.9;
  timeline = simulate(p, plan);
  p.codecContention = 1;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)).find("codecs beside it"), std::string::npos);
  for (double bad : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    p.codecContention = bad;
    EXPECT_NE(messageOf(checkProblem(p)).find("contention"), std::string::npos) << bad;
  }
}

TEST(Actions, CopiesThatPackTakeTheirCodecsTimeFromWhatRunsBesideThem) {
  Problem p = twoLayers();
  p.link = {100, 100, 100, 0};
  p.ops[2].seconds = 4;
  p.codecRates = {{Codec::Fp16, 50}};
  Plan plan = away(p, Action::Offload, Codec::Fp16);
  plan.decisions[0].absences[0].freeBefore = 3;
  // load f 0..2, out 2..4 beside g, which takes that much longer than 2..6, bg 6..7, 2 seconds back beside nothing, bf.
  Timeline timeline;
  for (double contention : {0.0, 0.5, 1.0}) {
    p.packingContention = contention;
    timeline = simulate(p, plan);
    EXPECT_EQ(messageOf(checkProblem(p)), "");
    EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
    EXPECT_DOUBLE_EQ(timeline.makespan, 10 + 2 * contention);
    EXPECT_DOUBLE_EQ(timeline.busy, 8 + 2 * contention);
  }
  p.packingContention = 0.9;
  timeline = simulate(p, plan);
  p.packingContention = 1;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)).find("beside it"), std::string::npos);
  plan.decisions[0].codec = {}; // what does not pack costs nothing
  EXPECT_DOUBLE_EQ(simulate(p, plan).busy, 8);
  for (double bad : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    p.packingContention = bad;
    EXPECT_NE(messageOf(checkProblem(p)).find("copies that pack have a contention"), std::string::npos) << bad;
  }
}

TEST(Actions, InversionReadsItsSourceAndKeepsASideSlot) {
  Problem p = twoLayers();
  p.buffers[0].inversion = Inversion{{1}, 2, 10};
  Plan plan = away(p, Action::Invert, {});
  const Timeline timeline = simulate(p, plan);
  EXPECT_EQ(messageOf(checkPlan(p, plan, 1000)), "");
  EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
  EXPECT_DOUBLE_EQ(timeline.makespan, 7);
  EXPECT_EQ(liveBytes(p, expand(p, plan)), (std::vector<Bytes>{100, 210, 210, 310, 410}));
  plan.decisions[1] = {Action::Offload, {}, {{2, 3, 3, 4}}, ""};
  EXPECT_NE(messageOf(checkPlan(p, plan, 1000)), "") << "bg reads the source while it is away";
  p.ops[4].reads = {3, 0};
  p.ops[3].reads = {2};
  EXPECT_EQ(messageOf(checkPlan(p, plan, 1000)), "") << "back in time for the inversion";
  p.ops.back().reads = {3};
  p.ops.back().reads.push_back(0);
  plan.decisions[1] = {Action::Encode, Codec::Mask, {{2, 3, -1, 4}}, ""};
  p.buffers[1].encodings = {{Codec::Mask, 4, 0, 0}};
  EXPECT_NE(messageOf(checkPlan(p, plan, 1000)), "") << "a mask is no source";
}

TEST(Actions, ConvertingCopiesHalveTheLinkAndRunNoFasterThanTheirCodec) {
  Problem p = twoLayers();
  p.codecRates = {{Codec::Fp16, 1000}};
  const Plan plan = away(p, Action::Offload, Codec::Fp16);
  // 50 bytes at 10 a second each way: load f 0..2, out 2..7, g 7..8, bg 8..9, in 9..14, bf 14..15.
  EXPECT_DOUBLE_EQ(simulate(p, plan).makespan, 15);
  p.codecRates = {{Codec::Fp16, 10}};
  EXPECT_DOUBLE_EQ(simulate(p, plan).makespan, 25);
  EXPECT_EQ(messageOf(checkTimeline(p, plan, simulate(p, plan))), "");
  p.codecRates.clear();
  EXPECT_NE(messageOf(checkPlan(p, plan, 1000)).find("'fp16'"), std::string::npos);
}

TEST(Actions, CopiesSendPackedFormsAndRunNoFasterThanTheirCodec) {
  Problem p = twoLayers();
  p.buffers[0].encodings = {{*parseForm("mask+zfp:6"), 20, 1, 4}, {Codec::Mask, 10, 0, 0}};
  Plan plan = away(p, Action::Offload, *parseForm("mask+zfp:6"));
  EXPECT_EQ(messageOf(checkPlan(p, plan, 1000)), "");
  // 20 bytes at 10 a second: load f 0..2, out 2..4, g 4..5, bg 5..6, unpacking 6..10, bf 10..11.
  const Timeline timeline = simulate(p, plan);
  EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
  EXPECT_DOUBLE_EQ(timeline.makespan, 11);
  EXPECT_EQ(timeline.hostBytes, aligned(p, 20));
  EXPECT_EQ(liveBytes(p, expand(p, plan)), liveBytes(p, expand(p, away(p, Action::Offload, {}))));
  p.buffers[0].encodings[0].bytes = 30; // 3 seconds out
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)).find("it takes 3"), std::string::npos);
  for (const char *wrong : {"mask+zfp:8", "int8", "mask"}) {
    plan.decisions[0].codec = *parseForm(wrong);
    EXPECT_NE(messageOf(checkPlan(p, plan, 1000)).find("which the device does not have for it"), std::string::npos)
        << wrong;
  }
}

TEST(Actions, CopiesTakeTheirContentionFromWhatRunsBesideThem) {
  Problem p = twoLayers();
  const auto span = [&](double contention) {
    p.link.contention = contention;
    const Plan plan = away(p, Action::Offload, {});
    const Timeline timeline = simulate(p, plan);
    EXPECT_EQ(messageOf(checkProblem(p)), "");
    EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
    EXPECT_DOUBLE_EQ(timeline.busy, 5);
    return timeline.makespan;
  };
  // 100 bytes at 10 a second each way: load f 0..2, out 2..12 and in 14..24 beside nothing, as g and bf wait for them.
  EXPECT_DOUBLE_EQ(span(0), 25);
  EXPECT_DOUBLE_EQ(span(0.05), 25);
  // Ten times the rate: out 2..3 and in 4..5 beside g and bg, if g need not wait; g takes 1 second more per 20 bytes.
  p = twoLayers();
  p.link = {100, 100, 100, 0};
  p.ops[2].seconds = 2;
  Plan plan = away(p, Action::Offload, {});
  plan.decisions[0].absences[0].freeBefore = 3;
  for (const auto &[contention, expected] : {std::pair(0.0, 7.0), {0.005, 7.5}, {0.01, 8.0}, {0.05, 12.0}}) {
    p.link.contention = contention;
    const Timeline timeline = simulate(p, plan);
    EXPECT_NEAR(timeline.makespan, expected, 1e-9) << contention;
    EXPECT_NEAR(timeline.busy, 6 + 100 * contention, 1e-9) << contention;
    EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "") << contention;
  }
  Timeline timeline = simulate(p, plan);
  p.link.contention = 0.06;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)).find("beside it"), std::string::npos);
  for (double bad : {-1e-10, 1.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    p.link.contention = bad;
    EXPECT_NE(messageOf(checkProblem(p)).find("contention"), std::string::npos) << bad;
  }
}

TEST(Actions, TheCheckerRejectsCodecsThatAreTooFastOrMissing) {
  Problem p = twoLayers();
  p.buffers[0].encodings = {{Codec::Zfp, 20, 3, 5}};
  const Plan plan = away(p, Action::Compress, Codec::Zfp);
  Timeline timeline = simulate(p, plan);
  p.buffers[0].encodings[0].decodeSeconds = 6;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)), "");
  p.buffers[0].encodings[0].decodeSeconds = 5;
  for (Event &e : timeline.events)
    if (e.what == Event::What::Decode)
      e.start -= 1, e.end -= 1;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)), "") << "starts before its op has ended";
  Problem q = twoLayers();
  q.buffers[0].inversion = Inversion{{1}, 2};
  const Plan inverts = away(q, Action::Invert, {});
  timeline = simulate(q, inverts);
  timeline.events.erase(std::find_if(timeline.events.begin(), timeline.events.end(),
                                     [](const Event &e) { return e.what == Event::What::Invert; }));
  EXPECT_NE(messageOf(checkTimeline(q, inverts, timeline)), "");
}

TEST(Actions, AnotherWayToRunAgainReadsWhatTheFirstRunSaved) {
  Problem p = twoLayers();
  Buffer statistics;
  statistics.name = "statistics";
  statistics.bytes = 5;
  p.buffers.push_back(statistics);
  p.ops[1].writes = {1, 5};
  p.ops[1].rerun = Rerun{0.25, 0, {0, 5}, {1}};
  p.buffers[1].producers = {1};
  const Options options = everythingAllowed({});
  Choice choice;
  choice.recomputed = {1};
  const Attempt attempt = Combiner(p, 10000, options).attempt(choice);
  ASSERT_TRUE(attempt.feasible);
  EXPECT_EQ(messageOf(checkPlan(p, attempt.plan, 10000)), "");
  EXPECT_EQ(messageOf(checkTimeline(p, attempt.plan, simulate(p, attempt.plan))), "");
  EXPECT_DOUBLE_EQ(attempt.makespan, 5.25);
  // The statistics live from f to its re-run before bg, though no backward op reads them.
  EXPECT_EQ(liveBytes(p, expand(p, attempt.plan)), (std::vector<Bytes>{100, 205, 305, 305, 400, 400}));
}

} // namespace sluice::planner
