// SPDX-License-Identifier: Apache-2.0
// No strategy is slower with more memory than its own plan for a tenth of the activations that is less.
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Strategies.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"
#include "tools/bench/reproduce/Networks.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice::planner {

static Seconds spanOf(const Problem &p, Bytes budget, const std::string &name, const Options &options) {
  const Answer answer = runStrategy(p, budget, name, options);
  const auto *plan = std::get_if<Plan>(&answer);
  return plan ? simulate(p, *plan).makespan : std::numeric_limits<Seconds>::infinity();
}

/// At tenths of what keep adds to the base, and a little above.
static void expectMonotone(const Problem &p, const std::string &name, const Options &options) {
  const Bytes kept = peakBytes(p, expand(p, keepPlan(p))) - p.base;
  Seconds least = std::numeric_limits<Seconds>::infinity();
  for (int tenth = 2; tenth <= 10; tenth += 2)
    for (Bytes more : {Bytes(0), kept / 27}) {
      const Bytes budget = p.base + kept / 10 * tenth / p.alignment * p.alignment + more;
      const Seconds span = spanOf(p, budget, name, options);
      EXPECT_LE(span, least) << name << " at " << budget << " of " << p.base + kept;
      if (more == 0)
        least = std::min(least, span);
    }
}

static Options unpacked(Options options) {
  options.pack = false; // a plan for less may have been planned again until it packed
  return options;
}

TEST(Monotone, EveryStrategyOnRandomPrograms) {
  for (unsigned seed = 0; seed < test::instances(10); ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.forwardOps = 4 + seed % 16;
    shape.codecs = seed % 2;
    const Problem p = test::randomProblem(seed, shape);
    for (const Strategy &s : strategies())
      if (s.name != "auto" && s.name != "checkmate")
        expectMonotone(p, s.name, unpacked(everythingAllowed({})));
  }
}

TEST(Monotone, EveryStrategyOnRandomChains) {
  for (unsigned seed = 0; seed < test::instances(10); ++seed) {
    SCOPED_TRACE(seed);
    const Chain chain = test::randomChain(seed, 4 + seed % 8);
    const ChainProblem lifted(chain, true);
    for (const Strategy &s : strategies())
      if (s.name != "auto" && s.name != "checkmate")
        expectMonotone(lifted.problem, s.name, unpacked({}));
  }
}

TEST(Monotone, RivalsOnNetworks) {
  const Problem p = bench::network("mobilenet_v2", *loadProfile("v100-pcie"), 8, 128);
  Options options;
  options.executable = {Action::Keep, Action::Offload, Action::Recompute, Codec::Mask, Codec::Argmax};
  for (const char *name : {"superneurons", "capuchin", "vdnn-all", "autoswap", "pofo", "dtr"})
    expectMonotone(p, name, unpacked(options));
}

/// Bytes of a budget that is a share of what keep adds to the base.
static Bytes budgetOf(const Problem &p, double share, const Options &options) {
  const Bytes keep = std::get<Plan>(runStrategy(p, noBudget, "keep", options)).arenaBytes;
  return p.base + static_cast<Bytes>(share * static_cast<double>(keep - p.base)) / 256 * 256;
}

TEST(Monotone, VdnnAllWherePlansArePackedAgain) {
  const Problem p = bench::network("densenet121", *loadProfile("v100-pcie"), 32, 224);
  Options options;
  options.executable = exactActions();
  EXPECT_LE(spanOf(p, budgetOf(p, 0.4, options), "vdnn-all", options),
            spanOf(p, budgetOf(p, 0.3, options), "vdnn-all", options));
}

/// The first plan that packs may leave four points of the activations unused.
TEST(Monotone, PlansThatPackAreNoTighterThanNeeded) {
  const Problem p = bench::network("resnet50", *loadProfile("v100-pcie"), 32, 224);
  Options options;
  options.executable = exactActions();
  const Bytes budget = budgetOf(p, 0.4, options);
  const Seconds kept = simulate(p, keepPlan(p)).makespan;
  EXPECT_LT(spanOf(p, budget, "superneurons", options), 1.6 * kept) << "within less, 1.64";
}

/// Each is in the space of the one after it.
TEST(Monotone, MoversFitWhereWeakerOnesDo) {
  const Problem p = bench::network("resnet50", *loadProfile("v100-pcie"), 32, 224);
  Options options;
  options.executable = exactActions();
  Bytes before = std::numeric_limits<Bytes>::max();
  for (const char *name : {"vdnn-all", "greedy", "dynprog"}) {
    const Answer answer = runStrategy(p, p.base, name, options);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(answer)) << name;
    EXPECT_LE(std::get<Infeasible>(answer).smallestMemory, before) << name;
    before = std::get<Infeasible>(answer).smallestMemory;
    const Answer enough = runStrategy(p, before, name, options);
    ASSERT_TRUE(std::holds_alternative<Plan>(enough)) << name;
    EXPECT_EQ(std::get<Plan>(enough).strategy, name);
  }
}

TEST(Monotone, GreedyFitsWhereMovingAllDoes) {
  const Problem p = bench::network("mobilenet_v2", *loadProfile("v100-pcie"), 32, 224);
  Options options;
  options.executable = exactActions();
  const Bytes budget = budgetOf(p, 0.3, options);
  std::map<std::string, Seconds> spans;
  for (const char *name : {"vdnn-all", "greedy", "dynprog", "vdnn", "autoswap"}) {
    const Answer answer = runStrategy(p, budget, name, options);
    ASSERT_TRUE(std::holds_alternative<Plan>(answer)) << name;
    spans[name] = simulate(p, std::get<Plan>(answer)).makespan;
  }
  // All is moved only where no other plan fits.
  for (const char *name : {"dynprog", "vdnn", "autoswap"})
    EXPECT_LT(spans[name], 0.8 * spans["vdnn-all"]) << name;
}

TEST(Monotone, RivalsFitWhereWeakerOnesDo) {
  const Problem p = bench::network("densenet121", *loadProfile("v100-pcie"), 8, 128);
  Options options;
  options.executable = {Action::Keep, Action::Offload, Action::Recompute};
  std::map<std::string, Bytes> smallest;
  for (const char *name : {"chen", "rotor", "pofo"}) {
    const Answer answer = runStrategy(p, p.base, name, options);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(answer)) << name;
    smallest[name] = std::get<Infeasible>(answer).smallestMemory;
  }
  EXPECT_LE(smallest["rotor"], smallest["chen"]) << "equal segments are in rotor's space";
  EXPECT_LE(smallest["pofo"], smallest["rotor"]) << "plans that move nothing are in pofo's space";
}

} // namespace sluice::planner
