// SPDX-License-Identifier: Apache-2.0
// Inversions of several sources on a reversible network: v_(k+1) = v_(k-1) + F_k(v_k), so that v_(k-1) comes back from
// v_(k+1) and from F_k run again.
#include "passes/planner/Check.h"
#include "passes/planner/Inversions.h"
#include "passes/planner/Recomputation.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Transfers.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/MessageOf.h"

#include <gtest/gtest.h>

namespace sluice::planner {

namespace {

constexpr Bytes unit = 1024;

/// `blocks` times h_k = norm(v_k), v_(k+1) = conv(h_k) + v_(k-1), the sum in the convolution's place; a step of one
/// second each. Backward, convolution and norm of each block read h_k and v_k; then the block's weight changes.
class Reversible {
public:
  explicit Reversible(int blocks) {
    problem.link = {1e3, 1e3, 1e3, 0};
    v = {buffer("v0", false), buffer("v1", true)};
    op("load", Phase::Forward, {}, v);
    for (int k = 1; k <= blocks; ++k) {
      h.push_back(buffer("h" + std::to_string(k), true));
      v.push_back(buffer("v" + std::to_string(k + 1), k < blocks));
      op("norm" + std::to_string(k), Phase::Forward, {v[k]}, {h[k - 1]});
      op("conv" + std::to_string(k), Phase::Forward, {h[k - 1]}, {v[k + 1]});
      op("add" + std::to_string(k), Phase::Forward, {v[k - 1], v[k + 1]}, {v[k + 1]});
    }
    int gradient = buffer("g", false);
    op("loss", Phase::Backward, {v.back()}, {gradient});
    for (int k = blocks; k >= 1; --k) {
      const int dh = buffer("dh" + std::to_string(k), false), next = buffer("g" + std::to_string(k), false);
      op("dconv" + std::to_string(k), Phase::Backward, {gradient, h[k - 1]}, {dh});
      if (k > 2) // v0 is read by nobody later, v1 by norm1
        problem.buffers[v[k - 1]].inversion =
            Inversion{{v[k + 1], h[k - 1]}, 2, 0, unit / 2, static_cast<int>(problem.ops.size()), false};
      op("update" + std::to_string(k), Phase::Update, {}, {});
      op("dnorm" + std::to_string(k), Phase::Backward, {dh, gradient, v[k]}, {next});
      gradient = next;
    }
    problem.buffers[v[1]].inversion = Inversion{{v[3], h[1]}, 2, 0, unit / 2, std::numeric_limits<int>::max(), false};
  }

  Problem problem;
  std::vector<int> v, h;

private:
  int buffer(const std::string &name, bool activation) {
    Buffer b;
    b.name = name;
    b.bytes = unit;
    b.activation = b.offloadable = activation;
    problem.buffers.push_back(b);
    return static_cast<int>(problem.buffers.size()) - 1;
  }
  void op(const std::string &name, Phase phase, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.phase = phase;
    o.seconds = phase == Phase::Update ? 0 : 1;
    o.recomputable = name != "load";
    for (int b : writes)
      if (phase == Phase::Forward && o.recomputable)
        problem.buffers[b].producers.push_back(static_cast<int>(problem.ops.size()));
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    problem.ops.push_back(std::move(o));
  }
};

Options allowing(Abilities actions) {
  Options options = everythingAllowed({});
  options.executable = Abilities{Action::Keep, Action::Recompute} | actions;
  return options;
}

Bytes leastMemory(const Problem &problem, const std::string &strategy, const Options &options) {
  const Answer answer = runStrategy(problem, problem.base, strategy, options);
  const auto *none = std::get_if<Infeasible>(&answer);
  return none ? none->smallestMemory : -1;
}

/// Everything dropped: norms run again, sums are rebuilt.
Plan everythingDropped(const Reversible &net) {
  Plan plan = keepPlan(net.problem);
  const Recomputation recomputation(net.problem);
  recomputation.apply(recomputation.closure(net.h), plan);
  for (size_t k = 1; k + 2 < net.v.size(); ++k)
    plan.decisions[net.v[k]].action = Action::Invert;
  widenGaps(net.problem, plan);
  return plan;
}

} // namespace

TEST(Reversible, MixedNeedsTheSameMemoryForAnyNumberOfBlocks) {
  const Bytes few = leastMemory(Reversible(6).problem, "mixed", allowing({Action::Invert}));
  EXPECT_GT(few, 0);
  EXPECT_LE(few, 8 * unit);
  for (int blocks : {10, 20}) {
    const Reversible net(blocks);
    EXPECT_EQ(leastMemory(net.problem, "mixed", allowing({Action::Invert})), few) << blocks;
    const Answer answer = runStrategy(net.problem, few, "mixed", allowing({Action::Invert}));
    ASSERT_TRUE(std::holds_alternative<Plan>(answer));
    const Plan &plan = std::get<Plan>(answer);
    EXPECT_EQ(messageOf(checkPlan(net.problem, plan, few)), "");
    EXPECT_EQ(messageOf(checkTimeline(net.problem, plan, simulate(net.problem, plan))), "");
    EXPECT_EQ(plan.decisions[net.v[4]].action, Action::Invert);
  }
  Options own = allowing({}); // dtr gets along with as little where each op may run again eight times
  own.knobs["takeover"] = "0";
  EXPECT_GT(leastMemory(Reversible(30).problem, "mixed", own), few + 4 * unit) << "checkpoints grow";
}

TEST(Reversible, SumsAreRebuiltOnceTheirOtherAddendIsThereAndBeforeTheWeightChanges) {
  const Reversible net(6);
  const Plan plan = everythingDropped(net);
  for (int k = 6; k >= 3; --k) {
    // Block k's norm runs again before its dconv; v_(k-1) comes back before the update that follows.
    const auto dconv = std::find_if(net.problem.ops.begin(), net.problem.ops.end(),
                                    [&](const Op &op) { return op.name == "dconv" + std::to_string(k); });
    EXPECT_EQ(plan.decisions[net.v[k - 1]].absences[0].neededBy, dconv - net.problem.ops.begin() + 1);
  }
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 8 * unit)), "");
  EXPECT_EQ(messageOf(checkTimeline(net.problem, plan, simulate(net.problem, plan))), "");
}

TEST(Reversible, TheCheckerWantsSourcesBackBeforeTheInversionAndParametersUnchanged) {
  const Reversible net(6);
  const Plan plan = everythingDropped(net);
  const Absence &v3 = plan.decisions[net.v[3]].absences[0];
  Plan late = plan;
  late.decisions[net.v[3]].absences[0].neededBy++;
  late.decisions[net.v[3]].absences[0].returnAfter++;
  EXPECT_NE(messageOf(checkPlan(net.problem, late, 1 << 20)).find("change at"), std::string::npos);
  Plan circle = plan;
  circle.decisions[net.v[5]] = plan.decisions[net.v[3]]; // v3 is rebuilt from v5
  EXPECT_NE(messageOf(checkPlan(net.problem, circle, 1 << 20)), "");
  Plan packed = plan;
  packed.decisions[net.v[5]] = {
      Action::Offload, Codec::Fp16, {{v3.leaveAfter, v3.freeBefore, v3.returnAfter - 2, v3.neededBy - 1}}, ""};
  Problem halves = net.problem;
  halves.codecRates = {{Codec::Fp16, 1e6}};
  EXPECT_NE(messageOf(checkPlan(halves, packed, 1 << 20)).find("comes back from fp16"), std::string::npos);
  for (const char *codec : {"zfp", "int8"}) {
    packed.decisions[net.v[5]].action = Action::Compress;
    packed.decisions[net.v[5]].codec = *parseForm(codec);
    EXPECT_NE(messageOf(checkPlan(halves, packed, 1 << 20)).find(std::string("comes back from ") + codec),
              std::string::npos);
  }
  Problem larger = net.problem;
  for (Buffer &b : larger.buffers)
    if (b.inversion)
      b.inversion->workspace = 50 * unit;
  EXPECT_EQ(messageOf(checkPlan(larger, plan, 60 * unit)), "");
  EXPECT_NE(messageOf(checkPlan(larger, plan, 50 * unit)), "") << "what an inversion needs besides counts";
}

TEST(Reversible, BuffersThatAreRebuiltFromEachOtherAreNotBothInverted) {
  Reversible net(4);
  net.problem.buffers[net.v[3]].inversion = Inversion{{net.v[2]}, 1};
  net.problem.buffers[net.v[2]].inversion = Inversion{{net.v[3]}, 1};
  Plan plan = keepPlan(net.problem);
  plan.decisions[net.v[2]].action = plan.decisions[net.v[3]].action = Action::Invert;
  placeInversions(net.problem, plan);
  EXPECT_NE(plan.decisions[net.v[2]].action, plan.decisions[net.v[3]].action);
}

} // namespace sluice::planner
