// SPDX-License-Identifier: Apache-2.0
// Every strategy on random branching problems: plans pass the independent checker at every budget, infeasible answers
// name a budget that works, and what must never be slower than keep is not.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Pack.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice::planner {

using test::randomProblem;

static Bytes keepPeak(const Problem &p) { return peakBytes(p, expand(p, keepPlan(p))); }

/// What must hold of any answer.
static void expectSound(const Problem &p, Bytes budget, const std::string &name, const Options &options) {
  Answer answer = runStrategy(p, budget, name, options);
  ASSERT_FALSE(std::holds_alternative<Refused>(answer)) << std::get<Refused>(answer).reason;
  if (auto *none = std::get_if<Infeasible>(&answer)) {
    ASSERT_GT(none->smallestMemory, budget);
    ASSERT_GE(none->smallestMemory, memoryFloor(p));
    answer = runStrategy(p, none->smallestMemory, name, options);
    ASSERT_TRUE(std::holds_alternative<Plan>(answer)) << name << " fails at its own smallest budget";
    budget = none->smallestMemory;
  }
  const Plan &plan = std::get<Plan>(answer);
  ASSERT_EQ(messageOf(checkPlan(p, plan, budget)), "");
  ASSERT_LE(plan.arenaBytes, budget);
  const Timeline timeline = simulate(p, plan);
  ASSERT_EQ(messageOf(checkTimeline(p, plan, timeline)), "");
  ASSERT_LE(timeline.peakBytes, budget);
  ASSERT_GE(timeline.makespan, actionBound(p, budget, allowedActions(options)) * (1 - 1e-9));
}

TEST(Strategies, PlansWithoutABudgetArePackedTightly) {
  bool looser = false; // where packing ends with the first order
  for (unsigned seed = 0; seed < 20; ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 30;
    const Problem p = randomProblem(seed, shape);
    const Plan plan = std::get<Plan>(runStrategy(p, noBudget, "vdnn-all", everythingAllowed({})));
    const std::vector<PackItem> items = packItems(p, expand(p, plan));
    const Bytes tight = pack(items, {0, Options().packNodes}).height;
    EXPECT_EQ(plan.arenaBytes, p.base + tight) << seed;
    looser = looser || pack(items, {noBudget}).height > tight;
  }
  EXPECT_TRUE(looser);
}

TEST(Strategies, UseOnlyWhatTheTargetExecutes) {
  int plans = 0;
  for (unsigned seed = 0; seed < test::instances(8); ++seed)
    for (const Action missing : {Action::Offload, Action::Recompute}) {
      SCOPED_TRACE(std::to_string(seed) + " without " + actionName(missing));
      Problem p = randomProblem(seed);
      for (size_t op = seed % 3; op < p.ops.size(); op += 3)
        p.ops[op].recomputable = false; // of what can neither move nor run again
      Options options;
      options.executable.remove(missing);
      for (const Strategy &strategy : strategies())
        for (double share : {0.8, 0.4}) {
          const Bytes budget = p.base + static_cast<Bytes>(share * static_cast<double>(keepPeak(p) - p.base));
          Answer answer = runStrategy(p, budget, strategy.name, options);
          if (auto *none = std::get_if<Infeasible>(&answer))
            answer = runStrategy(p, none->smallestMemory, strategy.name, options);
          const Plan *plan = std::get_if<Plan>(&answer);
          for (const Decision &d : plan ? plan->decisions : std::vector<Decision>())
            ASSERT_NE(d.action, missing) << strategy.name;
          plans += plan != nullptr;
        }
    }
  EXPECT_GT(plans, 300);
}

TEST(Strategies, RandomBranchingProblemsAreSound) {
  for (unsigned seed = 0; seed < test::instances(80); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 3 + seed % 25;
    shape.slowLink = seed % 3 == 0;
    shape.codecs = seed % 4 == 0;
    const Problem p = randomProblem(seed, shape);
    ASSERT_EQ(messageOf(checkProblem(p)), "");
    for (const Strategy &strategy : strategies())
      for (double share : {0.0, 0.3, 0.5, 0.7, 0.9, 1.0}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " strategy " + strategy.name + " share " + std::to_string(share));
        if (strategy.name == "auto")
          continue; // auto is mixed
        if (strategy.name == "checkmate" && shape.forwardOps > 4)
          continue; // an integer program: SmallOptimaTest.cpp has more of it
        Options options = everythingAllowed({});
        if (strategy.name == "mixed")
          options.knobs["trials"] = "20";
        options.packNodes = 2000;
        expectSound(p, p.base + Bytes((keepPeak(p) - p.base) * share), strategy.name, options);
        if (HasFatalFailure())
          return;
      }
  }
}

TEST(Strategies, RotorMakesNothingAgainFromWhatAGradientHasOverwritten) {
  test::RandomShape shape; // the instance of planner-fuzz with this seed
  shape.forwardOps = 9;
  shape.slowLink = true;
  const Problem p = randomProblem(7014015, shape);
  for (const char *name : {"rotor", "pofo"})
    for (int fourths = 4; fourths <= 12; ++fourths)
      expectSound(p, p.base + memoryFloor(p) / 4 * fourths, name, everythingAllowed({}));
}

TEST(Strategies, HascoetFitsWhereWhatItFetchesEarlyMeetsWhatIsStillCopiedOut) {
  for (const unsigned seed : {41685, 53031}) { // instances of planner-fuzz
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.forwardOps = 2 + static_cast<int>(seed / 2 % 12);
    shape.slowLink = seed % 3 == 0;
    shape.codecs = seed % 4 == 1;
    const Problem p = randomProblem(seed, shape);
    expectSound(p, p.base, "hascoet", everythingAllowed({}));
    for (int tenths = 4; tenths <= 10; ++tenths)
      expectSound(p, p.base + (keepPeak(p) - p.base) / 10 * tenths, "hascoet", everythingAllowed({}));
  }
}

/// f writes a and b; g writes on in place of a, and c, which cannot come back without a as f left it.
static Problem writtenTwice() {
  Problem p;
  for (const char *name : {"a", "b", "c", "loss", "gradient"}) {
    Buffer buffer;
    buffer.name = name;
    buffer.bytes = 1024;
    p.buffers.push_back(buffer);
  }
  const auto op = [&](const char *name, int stage, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.phase = name[0] == 'b' ? Phase::Backward : Phase::Forward;
    o.stage = stage;
    o.seconds = 1;
    o.recomputable = o.phase == Phase::Forward;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    p.ops.push_back(o);
  };
  op("f", 0, {}, {0, 1});
  op("g", 0, {0, 1}, {0, 2});
  op("loss", 1, {0}, {3});
  op("bloss", 1, {0}, {4});
  op("bg", 0, {4, 2, 0}, {4});
  op("bf", 0, {4, 1}, {4});
  p.ops[2].workspace = 4096; // b has to go for it
  for (int b : {0, 1, 2})
    p.buffers[b].activation = true;
  p.buffers[0].producers = {0, 1};
  p.buffers[1].producers = {0};
  p.buffers[2].producers = {1};
  return p;
}

TEST(Strategies, RotorRunsAllWritersOfABufferAgainOrNone) {
  const Problem p = writtenTwice();
  ASSERT_EQ(messageOf(checkProblem(p)), "");
  for (const char *name : {"rotor", "pofo"})
    for (Bytes budget = memoryFloor(p); budget <= keepPeak(p); budget += 256)
      expectSound(p, budget, name, everythingAllowed({}));
}

TEST(Strategies, ThresholdsInBytesDoNotHoldOnChainsWhoseSizesHaveNoUnit) {
  for (const char *name : {"autoswap", "mixed"}) {
    int offloading = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Chain c = test::randomChain(seed, 8);
      Options options;
      if (name[0] == 'm') // else other strategies' plans take over
        options.knobs["recompute"] = "0";
      const ChainAnswer answer = runStrategy(c, chainPeak(c) * 0.8, Release::Whole, name, options);
      if (const auto *plan = std::get_if<ChainPlan>(&answer))
        offloading += std::count(plan->actions.begin(), plan->actions.end(), Action::Offload) > 0;
    }
    EXPECT_GT(offloading, 10) << name;
  }
}

/// Positions of a plan of vdnnpp on a row of layers.
static void expectProtocol(const Problem &p, const Plan &plan, bool synchronous) {
  int firstBackward = 0;
  while (p.ops[firstBackward].phase == Phase::Forward)
    ++firstBackward;
  std::map<int, int> prefetches;
  const std::vector<Accesses> accesses = accessesOf(p);
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    const Decision &d = plan.decisions[b];
    if (d.action != Action::Offload)
      continue;
    ASSERT_EQ(d.absences.size(), 1u);
    const Absence &away = d.absences[0];
    EXPECT_EQ(away.leaveAfter, accesses[b].lastForwardWrite) << "the copy runs beside the layer that reads";
    EXPECT_LE(away.freeBefore, firstBackward) << "copies out end before the backward half";
    EXPECT_GE(away.returnAfter, firstBackward - 1) << "copies in start with it";
    if (synchronous) {
      EXPECT_EQ(away.freeBefore, accesses[b].lastForward + 1);
      EXPECT_LE(away.neededBy, away.returnAfter + 2);
    }
    // Others are on demand; those of the first two layers share a position.
    if (away.returnAfter + 1 < away.neededBy && away.returnAfter > firstBackward) {
      EXPECT_EQ(++prefetches[away.returnAfter], 1) << "after op " << away.returnAfter;
    }
  }
}

TEST(Strategies, VdnnppKeepsItsProtocolOnPrograms) {
  int different = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Chain c = test::randomChain(seed, 9);
    for (size_t i = 0; i < c.kinds.size(); ++i)
      c.kinds[i] = i % 3 == 0 ? OpKind::Conv : i % 3 == 1 ? OpKind::Pool : OpKind::Activation;
    const ChainProblem lifted(c, true);
    Seconds span[2];
    for (bool synchronous : {false, true}) {
      SCOPED_TRACE(std::to_string(seed) + (synchronous ? " synchronous" : ""));
      Options options;
      options.knobs = {{"mode", "1"}, {"synchronous", synchronous ? "1" : "0"}};
      const Answer answer = runStrategy(lifted.problem, Bytes(1) << 40, "vdnnpp", options);
      ASSERT_TRUE(std::holds_alternative<Plan>(answer));
      const Plan &plan = std::get<Plan>(answer);
      EXPECT_GT(std::count_if(plan.decisions.begin(), plan.decisions.end(),
                              [](const Decision &d) { return d.action == Action::Offload; }),
                2);
      expectProtocol(lifted.problem, plan, synchronous);
      span[synchronous] = simulate(lifted.problem, plan).makespan;
    }
    EXPECT_LE(span[0], span[1] * (1 + 1e-9)) << seed;
    different += span[0] < span[1];
  }
  EXPECT_GT(different, 20);
}

TEST(Strategies, UnknownNameAndKnobAreRefusedByName) {
  const Problem p = randomProblem(1);
  const Answer name = runStrategy(p, 1 << 30, "gready");
  ASSERT_TRUE(std::holds_alternative<Refused>(name));
  EXPECT_NE(std::get<Refused>(name).reason.find("'gready'"), std::string::npos);
  Options options;
  options.knobs["depth"] = "3";
  const Answer knob = runStrategy(p, 1 << 30, "greedy", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(knob));
  EXPECT_NE(std::get<Refused>(knob).reason.find("'depth'"), std::string::npos);
}

} // namespace sluice::planner
