// SPDX-License-Identifier: Apache-2.0
// vDNN's modes on programs whose convolutions have kernels to choose from: dyn takes its profiles in order and then
// gives up speed layer by layer, with either protocol; vdnnpp has (p) and (m).
#include "passes/planner/Program.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Kernels.h"
#include "passes/strategies/Strategies.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::planner {

namespace {

/// Convolutions and activations in turn, eight of each. A convolution's kernels: 4 s without a workspace, 3 s with 20
/// bytes, 2 s with 60.
Problem convolutions() {
  Chain c;
  for (int i = 0; i < 16; ++i) {
    c.kinds.push_back(i % 2 == 0 ? OpKind::Conv : OpKind::Activation);
    c.uF.push_back(i % 2 == 0 ? 4 : 1);
    c.uB.push_back(i % 2 == 0 ? 8 : 1);
    c.exF.push_back(0);
    c.exB.push_back(0);
    c.saved.push_back(0);
  }
  c.x.assign(17, 10);
  c.y.assign(17, 10);
  c.bandwidth = 4;
  Problem p = ChainProblem(c, true).problem;
  for (Op &op : p.ops)
    if (op.kind == OpKind::Conv)
      op.alternatives = {{op.seconds, 0}, {op.seconds * 0.75, 20}, {op.seconds / 2, 60}};
  return p;
}

std::set<int> offloadedBy(const Plan &plan) {
  std::set<int> set;
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (plan.decisions[b].action == Action::Offload)
      set.insert(static_cast<int>(b));
  return set;
}

/// What the mode moves where that returns in the backward half.
std::set<int> movedBy(const Problem &p, int mode) {
  const std::vector<int> inputs = vdnnInputs(p, mode);
  return {inputs.begin(), inputs.end()};
}

/// 2 where all convolutions have the fastest kernels, 0 for those of least workspace, 1 between.
int kernelsOf(const Problem &p, const Plan &plan) {
  return plan.alternatives == fastestKernels(p) ? 2 : plan.alternatives == smallestKernels(p) ? 0 : 1;
}

Options withKnobs(std::map<std::string, std::string> knobs) {
  Options options;
  options.knobs = std::move(knobs);
  options.allowLossy = {Ability::algorithms()};
  return options;
}

class Dyn : public testing::TestWithParam<const char *> {
protected:
  const Problem p = convolutions();
  const bool plusPlus = std::string(GetParam()) == "vdnnpp";
  const Options options = plusPlus ? withKnobs({{"mode", "4"}}) : withKnobs({});
};

TEST_P(Dyn, TakesItsProfilesInOrderAndThenGivesUpSpeedLayerByLayer) {
  std::vector<std::pair<std::set<int>, int>> seen; // what moves, and kernels, by falling memory
  Answer answer = runStrategy(p, 0, GetParam(), options);
  const Bytes least = std::get<Infeasible>(answer).smallestMemory;
  Plan keep = keepPlan(p);
  keep.alternatives = fastestKernels(p);
  for (Bytes memory = peakBytes(p, expand(p, keep)); memory >= least; memory -= 2) {
    answer = runStrategy(p, memory, GetParam(), options);
    ASSERT_TRUE(std::holds_alternative<Plan>(answer)) << memory;
    const Plan &plan = std::get<Plan>(answer);
    const std::pair<std::set<int>, int> now = {offloadedBy(plan), kernelsOf(p, plan)};
    if (seen.empty() || seen.back() != now)
      seen.push_back(now);
  }
  const std::set<int> aconv = movedBy(p, 3), conv = movedBy(p, 2), all = movedBy(p, 1);
  ASSERT_GE(seen.size(), 4u);
  EXPECT_EQ(seen[0], std::pair(std::set<int>(), 2));
  EXPECT_EQ(seen[1], std::pair(aconv, 2));
  EXPECT_EQ(seen[2], std::pair(conv, 2));
  EXPECT_EQ(seen[3].second, 1);     // some convolutions have lost their fastest kernel
  EXPECT_EQ(seen.back().second, 1); // away from the peak fast ones have room
  EXPECT_TRUE(seen.back().first == conv || seen.back().first == all);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Dyn, testing::Values("vdnn-dyn", "vdnnpp"));

TEST(Vdnnpp, HasTheFastestKernelsAndThoseOfLeastWorkspace) {
  const Problem p = convolutions();
  for (const char *kernels : {"1", "2"}) {
    const Options options = withKnobs({{"mode", "2"}, {"kernels", kernels}});
    const Answer answer = runStrategy(p, Bytes(1) << 30, "vdnnpp", options);
    ASSERT_TRUE(std::holds_alternative<Plan>(answer));
    EXPECT_EQ(kernelsOf(p, std::get<Plan>(answer)), *kernels == '1' ? 0 : 2);
  }
  Problem one = p;
  for (Op &op : one.ops)
    op.alternatives.clear();
  const Answer none = runStrategy(one, Bytes(1) << 30, "vdnnpp", withKnobs({{"kernels", "1"}}));
  EXPECT_EQ(std::get<Refused>(none).reason,
            "strategy 'vdnnpp' with kernels=1 chooses kernels, and there are no alternatives: allow them with "
            "--allow-lossy=algorithms");
  const Answer both = runStrategy(p, Bytes(1) << 30, "vdnnpp", withKnobs({{"mode", "4"}, {"kernels", "1"}}));
  EXPECT_TRUE(std::holds_alternative<Refused>(both));
}

} // namespace

} // namespace sluice::planner
