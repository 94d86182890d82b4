// SPDX-License-Identifier: Apache-2.0
// Copies that leave zeros out: how long they take, and when strategies choose them.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Combine.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/TwoLayers.h"

#include <gtest/gtest.h>

namespace sluice::planner {

TEST(ZeroValues, CopiesThatLeaveZerosOutTakeAsLongAsWhatIsLeft) {
  Problem p = twoLayers();
  p.codecRates = {{Codec::Zvc, 1000}};
  const Plan plan = away(p, Action::Offload, Codec::Zvc);
  const auto span = [&](bool stay, double zeros, int elementBytes) {
    p.zerosStay = stay;
    p.buffers[0].zeroFraction = zeros;
    p.buffers[0].elementBytes = elementBytes;
    const Timeline timeline = simulate(p, plan);
    EXPECT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
    EXPECT_GE(timeline.makespan, actionBound(p, 1000, allActions()));
    return timeline.makespan;
  };
  // Raw 100 bytes at 10 a second each way beside nothing, as copies packed after the link and dense ones; 25 - 20 is
  // computed.
  EXPECT_DOUBLE_EQ(span(false, 0.5, 4), 25);
  EXPECT_DOUBLE_EQ(span(true, 0, 4), 25);
  EXPECT_DOUBLE_EQ(span(true, 0.5, 0), 25);
  // 50 and a bit for each of 25 floats, or of 50 halves, rounded up.
  EXPECT_DOUBLE_EQ(span(true, 0.5, 4), 5 + 2 * 5.4);
  EXPECT_DOUBLE_EQ(span(true, 0.5, 2), 5 + 2 * 5.7);
  const Timeline timeline = simulate(p, plan);
  p.buffers[0].zeroFraction = 0.4;
  EXPECT_NE(messageOf(checkTimeline(p, plan, timeline)), "");
  p.codecRates = {{Codec::Zvc, 10}};
  EXPECT_DOUBLE_EQ(span(true, 0.5, 4), 25);
}

TEST(ZeroValues, ZerosAreLeftOutWhereThatPays) {
  const auto codecOf = [](bool stay, double zeros, double rate) {
    Problem p = twoLayers();
    p.buffers[0].offloadable = true;
    p.buffers[0].zeroFraction = zeros;
    p.zerosStay = stay;
    p.codecRates = {{Codec::Zvc, rate}};
    Choice choice;
    choice.offloaded = {0};
    choice.codec = Codec::Zvc;
    const Options options = everythingAllowed({});
    return Combiner(p, 1000, options).marked(choice).decisions[0].codec;
  };
  EXPECT_EQ(codecOf(true, 0.5, 1000), Codec::Zvc);
  EXPECT_EQ(codecOf(true, 0.5, 9), Codec::None) << "slower than the link";
  EXPECT_EQ(codecOf(true, 0.03, 1000), Codec::None) << "its bits take more than its zeros";
  EXPECT_EQ(codecOf(false, 0.5, 9), Codec::Zvc) << "behind the link it saves host memory";
}

TEST(ZeroValues, PayInAPoolWhateverTheLinkSays) {
  Problem p = twoLayers();
  p.zerosStay = true;
  p.codecRates = {{Codec::Zvc, 9}};
  p.buffers[0].zeroFraction = 0.5;
  EXPECT_FALSE(zerosPay(p, 0, false)) << "slower than the link";
  EXPECT_TRUE(zerosPay(p, 0, true)) << "it saves host memory";
  p.buffers[0].zeroFraction = 0.03;
  EXPECT_FALSE(zerosPay(p, 0, true)) << "its bits take more than its zeros";
}

} // namespace sluice::planner
