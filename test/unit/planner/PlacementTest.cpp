// SPDX-License-Identifier: Apache-2.0
// Where plans put their bytes: nothing overlaps, no arena grows, and what begins after a step takes what it freed.
#include "passes/planner/Placement.h"
#include "passes/planner/Pack.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomProblems.h"
#include "test/unit/planner/TwoLayers.h"

#include <gtest/gtest.h>

namespace sluice::planner {

static bool meet(const Life &a, const Life &b) { return a.begin() < b.end() && b.begin() < a.end(); }

static void expectApart(const Problem &p, const Plan &plan, const Placement &placement) {
  Bytes height = 0;
  for (size_t i = 0; i < placement.places.size(); ++i) {
    const Place &a = placement.places[i];
    ASSERT_EQ(a.offset % p.alignment, 0);
    height = std::max(height, a.offset + a.life.bytes);
    for (size_t j = 0; j < i; ++j) {
      const Place &b = placement.places[j];
      ASSERT_FALSE(meet(a.life, b.life) && a.offset < b.offset + b.life.bytes && b.offset < a.offset + a.life.bytes)
          << "buffers " << a.life.buffer << " and " << b.life.buffer;
    }
  }
  ASSERT_EQ(placement.arena, p.base + height);
  ASSERT_LE(placement.arena, plan.arenaBytes);
}

TEST(Placement, PlansOfAllStrategiesAreApartInNoMoreThanTheirArena) {
  int packed = 0, lower = 0;
  for (unsigned seed = 0; seed < test::instances(20); ++seed) {
    test::RandomShape shape;
    shape.forwardOps = 4 + seed % 16;
    shape.codecs = true;
    const Problem p = test::randomProblem(seed, shape);
    const Bytes keep = std::get<Plan>(runStrategy(p, noBudget, "keep")).arenaBytes;
    for (const Strategy &strategy : strategies())
      for (double share : {0.4, 0.8}) {
        if (strategy.name == "auto" || strategy.name == "checkmate")
          continue;
        SCOPED_TRACE("seed " + std::to_string(seed) + " strategy " + strategy.name);
        Options options = everythingAllowed({});
        if (strategy.name == "mixed")
          options.knobs["trials"] = "10";
        options.packNodes = 2000;
        const Bytes budget = p.base + static_cast<Bytes>(share * static_cast<double>(keep - p.base));
        Answer answer = runStrategy(p, budget, strategy.name, options);
        const Plan *plan = std::get_if<Plan>(&answer);
        if (!plan)
          continue;
        const Placement placement = placeLives(p, *plan);
        expectApart(p, *plan, placement);
        if (HasFatalFailure())
          return;
        for (const Place &place : placement.places)
          packed += place.life.form == Life::Form::Packed;
        lower += placement.arena < plan->arenaBytes;
      }
  }
  EXPECT_GT(packed, 20); // the test would be empty otherwise
  EXPECT_GT(lower, 20);
}

/// `a` is packed after f and unpacked before the backward of f: the packed form meets neither of their workspaces.
TEST(Placement, PackedFormsMeetNeitherTheStepBeforeThemNorTheOneThatTheyAreUnpackedFor) {
  Problem p = twoLayers();
  p.buffers[0].encodings = {{Codec::Zfp, 60, 0.1, 0.1}};
  p.ops[1].workspace = p.ops[4].workspace = 60;
  const Plan plan = away(p, Action::Compress, Codec::Zfp);
  // By steps the last one has a, z, dz and da, 100 bytes each, the workspace and the packed form; by moments not the
  // latter.
  EXPECT_EQ(packLoad(packItems(p, expand(p, plan))), 520);
  const Placement placement = placeLives(p, plan);
  EXPECT_EQ(placement.arena, 460);
  int forms = 0;
  for (const Place &place : placement.places)
    if (place.life.form == Life::Form::Packed) {
      EXPECT_EQ(place.life.begin(), 4 * 1 + 1);
      EXPECT_EQ(place.life.end(), 4 * 4);
      ++forms;
    }
  EXPECT_EQ(forms, 1);
}

} // namespace sluice::planner
