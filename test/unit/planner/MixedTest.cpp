// SPDX-License-Identifier: Apache-2.0
// mixed against every other strategy: never slower, on networks and on random problems and chains; and what allowing
// lossy actions buys.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Strategies.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"
#include "test/unit/planner/SmallStep.h"
#include "tools/bench/reproduce/Networks.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice::planner {

static Options exact() {
  Options options = everythingAllowed({});
  options.allowLossy = {};
  return options;
}

static Seconds spanOf(const Problem &p, const Answer &answer) {
  const auto *plan = std::get_if<Plan>(&answer);
  return plan ? simulate(p, *plan).makespan : std::numeric_limits<Seconds>::infinity();
}

static void expectMixedWins(const Problem &p, Bytes budget, const Options &options, bool small) {
  const Answer mixed = runStrategy(p, budget, "mixed", options);
  const Seconds span = spanOf(p, mixed);
  EXPECT_GE(span, actionBound(p, budget, allowedActions(options)) * (1 - 1e-9));
  for (const Strategy &s : strategies()) {
    if (s.name == "auto" || (s.name == "checkmate" && !small))
      continue;
    const Answer other = runStrategy(p, budget, s.name, options);
    EXPECT_LE(span, spanOf(p, other)) << s.name;
    if (const auto *none = std::get_if<Infeasible>(&other), *own = std::get_if<Infeasible>(&mixed); none && own) {
      EXPECT_LE(own->smallestMemory, none->smallestMemory) << s.name;
    }
  }
}

TEST(Mixed, IsNeverSlowerThanAnotherStrategyOnNetworks) {
  const Profile profile = *loadProfile("v100-pcie");
  const char *names[] = {"resnet18", "mobilenet_v2", "vgg16", "unet_bn"};
  for (unsigned i = 0; i < test::instances(4); ++i) {
    const char *name = names[i];
    const Problem p = bench::network(name, profile, 8, 128);
    const Bytes keep = std::get<Plan>(runStrategy(p, Bytes(1) << 55, "keep")).arenaBytes;
    for (double share : {0.4, 0.7}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(share));
      expectMixedWins(p, p.base + static_cast<Bytes>(share * (keep - p.base)), exact(), false);
    }
  }
}

TEST(Mixed, IsNeverSlowerThanAnotherStrategyOnRandomProblems) {
  for (unsigned seed = 0; seed < test::instances(60); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 2 + seed % 14;
    shape.slowLink = seed % 3 == 0;
    shape.codecs = seed % 2 == 0;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes keep = peakBytes(p, expand(p, keepPlan(p)));
    for (double share : {0.3, 0.6, 0.85}) {
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(share));
      const Bytes budget = p.base + static_cast<Bytes>(share * (keep - p.base));
      expectMixedWins(p, budget, seed % 4 == 0 ? everythingAllowed({}) : exact(), p.ops.size() <= 12);
    }
  }
}

TEST(Mixed, MovesNothingThatTheBudgetHasRoomFor) {
  // All tensors are below GREEDY's smallest copy: only plans of strategies that move every tensor reach the budget by
  // copies.
  int moving = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    test::RandomShape shape;
    shape.unit = 64;
    Problem p = test::randomProblem(seed, shape);
    p.link.latency = 1e-6;
    p.link.d2h = p.link.h2d = 1e12;
    ASSERT_GT(smallestCopy(p), 64 * shape.unit);
    Options options = exact();
    options.executable = {Action::Offload};
    const Bytes keep = peakBytes(p, expand(p, keepPlan(p))),
                budget = p.base + static_cast<Bytes>(0.8 * (keep - p.base));
    const Answer answer = runStrategy(p, budget, "mixed", options);
    const Plan *plan = std::get_if<Plan>(&answer);
    for (size_t b = 0; plan && b < plan->decisions.size(); ++b)
      if (plan->decisions[b].action == Action::Offload) {
        Plan without = *plan;
        without.decisions[b] = Decision();
        EXPECT_GT(peakBytes(p, expand(p, without)), budget) << "seed " << seed << " " << p.buffers[b].name;
        ++moving;
      }
  }
  EXPECT_GT(moving, 0);
}

TEST(Mixed, IsNeverSlowerThanAnotherStrategyOnChains) {
  for (unsigned seed = 0; seed < test::instances(60); ++seed) {
    const Chain c = test::randomChain(seed, seed % 10);
    for (double share : {0.4, 0.7}) {
      const double memory = chainPeak(c) * share;
      const ChainAnswer mixed = runStrategy(c, memory, Release::Whole, "mixed");
      for (const Strategy &s : strategies()) {
        if (s.name == "hascoet" || s.name == "freelunch" || (s.name == "checkmate" && c.uF.size() > 6))
          continue; // lossy; beyond mixed's limits
        const ChainAnswer other = runStrategy(c, memory, Release::Whole, s.name);
        if (const auto *plan = std::get_if<ChainPlan>(&other)) {
          ASSERT_TRUE(std::holds_alternative<ChainPlan>(mixed)) << seed << " " << s.name;
          EXPECT_LE(std::get<ChainPlan>(mixed).timeline.makespan, plan->timeline.makespan) << seed << " " << s.name;
        }
      }
    }
  }
}

/// Layers of a long op that is read until the end and a short one whose result is read again backwards.
static Problem costlyLinkOrShortOps(double contention) {
  constexpr int layers = 6;
  Problem p;
  p.alignment = 1;
  p.link = {1000, 1000, 1000, 0, contention};
  const auto op = [&](Phase phase, int stage, Seconds seconds, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = "op" + std::to_string(p.ops.size());
    o.phase = phase;
    o.stage = stage;
    o.seconds = seconds;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    o.recomputable = phase == Phase::Forward && stage > 0;
    p.ops.push_back(o);
  };
  const auto buffer = [&](Bytes bytes, bool activation, std::vector<int> producers) {
    Buffer b;
    b.name = "b" + std::to_string(p.buffers.size());
    b.bytes = bytes;
    b.activation = b.offloadable = activation;
    b.producers = std::move(producers);
    p.buffers.push_back(b);
    return static_cast<int>(p.buffers.size()) - 1;
  };
  int last = buffer(1, true, {});
  op(Phase::Forward, 0, 1, {}, {last});
  std::vector<int> inputs, outputs;
  for (int i = 0; i < layers; ++i) { // short: 100 bytes out of one; long: one byte out of those
    inputs.push_back(last);
    const int wide = buffer(100, true, {static_cast<int>(p.ops.size())});
    op(Phase::Forward, i + 1, 0.05, {last}, {wide});
    last = buffer(1, true, {static_cast<int>(p.ops.size())});
    op(Phase::Forward, i + 1, 2, {wide}, {last});
    outputs.push_back(wide);
  }
  int gradient = buffer(1, false, {});
  op(Phase::Backward, layers, 1, {last}, {gradient});
  for (int i = layers; i-- > 0;) {
    const int next = buffer(1, false, {});
    op(Phase::Backward, i + 1, 2, {gradient, outputs[i], inputs[i]}, {next});
    gradient = next;
  }
  return p;
}

TEST(Mixed, WeighsWhatCopiesTakeFromComputeAgainstReruns) {
  const auto actions = [](double contention) {
    const Problem p = costlyLinkOrShortOps(contention);
    EXPECT_EQ(messageOf(checkProblem(p)), "");
    const Answer answer = runStrategy(p, 320, "mixed", exact());
    std::map<Action, int> count;
    if (const auto *plan = std::get_if<Plan>(&answer))
      for (const Decision &d : plan->decisions)
        ++count[d.action];
    return count;
  };
  // A tensor out and in costs compute 200 bytes of contention; to run its op again costs 0.05 seconds.
  std::map<Action, int> free = actions(0), cheap = actions(1e-5), dear = actions(1e-3);
  EXPECT_GT(free[Action::Offload], 0);
  EXPECT_EQ(free[Action::Recompute], 0);
  EXPECT_GT(cheap[Action::Offload], 0);
  EXPECT_EQ(cheap[Action::Recompute], 0);
  EXPECT_EQ(dear[Action::Offload], 0);
  EXPECT_GT(dear[Action::Recompute], 0);
}

TEST(Mixed, LossyActionsAreUsedOnlyWhenAllowedAndHelpWhereTheLinkIsShort) {
  int faster = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 14;
    shape.slowLink = shape.codecs = true;
    Problem p = test::randomProblem(seed, shape);
    p.codecContention = 0;
    for (Buffer &buffer : p.buffers)
      buffer.elementBytes = 4; // of others fp16 takes none
    const Bytes budget = p.base + (peakBytes(p, expand(p, keepPlan(p))) - p.base) * 6 / 10;
    const Answer strict = runStrategy(p, budget, "mixed", exact());
    const Answer loose = runStrategy(p, budget, "mixed", everythingAllowed({}));
    faster += spanOf(p, loose) < spanOf(p, strict);
    if (const auto *plan = std::get_if<Plan>(&strict))
      for (const Decision &d : plan->decisions) {
        EXPECT_NE(d.codec, Codec::Fp16);
        EXPECT_NE(d.codec, Codec::Zfp);
        EXPECT_NE(d.action, Action::Invert);
      }
  }
  EXPECT_GT(faster, 15);
}

TEST(Mixed, ChainsUseLossyActionsWhenAllowed) {
  int faster = 0;
  for (unsigned seed = 0; seed < test::instances(40); ++seed) {
    Chain c = test::randomChain(seed, 6);
    const double memory = chainPeak(c) * 0.6;
    Options options;
    const ChainAnswer strict = runStrategy(c, memory, Release::Whole, "mixed", options);
    options.allowLossy = {Codec::Fp16};
    const ChainAnswer loose = runStrategy(c, memory, Release::Whole, "mixed", options);
    const auto *a = std::get_if<ChainPlan>(&strict), *b = std::get_if<ChainPlan>(&loose);
    if (!a || !b)
      continue;
    EXPECT_LE(b->timeline.makespan, a->timeline.makespan);
    EXPECT_GE(b->timeline.makespan, strategyBound(c, memory, "mixed", options) * (1 - 1e-9));
    for (Action action : b->actions)
      EXPECT_TRUE(action == Action::Keep || action == Action::Offload || action == Action::Recompute);
    faster += b->timeline.makespan < a->timeline.makespan;
  }
  EXPECT_GT(faster, static_cast<int>(test::instances(40)) / 8);
}

TEST(Mixed, RunsAChainAgainBeforeALaterReaderInsteadOfWaitingForACopy) {
  // `late` is read by the first backward op and by the last, between which memory has no place for it. To make it again
  // for the last one alone takes two ops of a second, as what it is made from is gone; a copy takes a hundred each way.
  test::SmallStep step(1);
  const int first = step.buffer(true), late = step.buffer(true), output = step.buffer(true);
  step.op(Phase::Forward, {}, {first});
  step.op(Phase::Forward, {first}, {late});
  step.op(Phase::Forward, {late}, {output});
  const int gradient = step.buffer(false);
  step.op(Phase::Backward, {late, output}, {gradient});
  const std::vector<int> wide = {step.buffer(false), step.buffer(false), step.buffer(false)};
  step.op(Phase::Backward, {gradient}, wide);
  const int next = step.buffer(false), last = step.buffer(false);
  step.op(Phase::Backward, wide, {next});
  step.op(Phase::Backward, {late, next}, {last});
  step.problem.buffers[first].producers = {0};
  step.problem.buffers[late].producers = {1};
  step.problem.buffers[output].producers = {2};
  ASSERT_EQ(messageOf(checkProblem(step.problem)), "");
  Options options = exact();
  options.knobs["takeover"] = "0"; // checkmate is exact on so few ops
  EXPECT_EQ(spanOf(step.problem, runStrategy(step.problem, 400, "mixed", options)), 9);
}

TEST(Mixed, KnobsForbidActionsToPlansThatTakeOver) {
  const Problem p = test::randomProblem(3);
  const Bytes budget = p.base + (peakBytes(p, expand(p, keepPlan(p))) - p.base) * 7 / 10;
  Options options = exact();
  options.knobs["recompute"] = "0";
  const Answer answer = runStrategy(p, budget, "mixed", options);
  if (const auto *plan = std::get_if<Plan>(&answer)) {
    EXPECT_TRUE(plan->recomputes.empty());
  }
}

} // namespace sluice::planner
