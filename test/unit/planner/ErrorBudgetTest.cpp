// SPDX-License-Identifier: Apache-2.0
// Plans within an error budget: what is added up, what the checker refuses, and that mixed gives tensors codecs and
// rates by what they do to the gradients.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Errors.h"
#include "passes/planner/Packings.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/LossyForms.h"
#include "passes/strategies/Strategies.h"
#include "passes/strategies/WithinBudget.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/Instances.h"
#include "test/unit/planner/RandomProblems.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace sluice::planner {

namespace {

Codec zfp(int rate) { return {Codec::Zfp, rate}; }

/// `layers` ops in a row, each of which reads the last one's value again in the backward half; values of 1000 bytes
/// that int8 packs into 266, zfp at 4 and 8 bits into 125 and 250. The tensors of even layers are ten times as
/// sensitive. Copies take as long as ten ops, and nothing can run again.
Problem rowOf(int layers, double errorBudget) {
  Problem p;
  p.alignment = 1;
  p.link = {100, 100, 100, 0};
  p.codecRates = {{Codec::Fp16, 1e5}};
  p.codecContention = 1;
  p.errorBudget = errorBudget;
  auto buffer = [&](const std::string &name, Bytes bytes) {
    p.buffers.emplace_back();
    p.buffers.back().name = name;
    p.buffers.back().bytes = bytes;
    return static_cast<int>(p.buffers.size()) - 1;
  };
  auto op = [&](const std::string &name, Phase phase, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.phase = phase;
    o.seconds = 1;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    o.recomputable = false;
    p.ops.push_back(o);
  };
  for (int i = 0; i < layers; ++i) {
    const int x = buffer("x" + std::to_string(i), 1000);
    Buffer &made = p.buffers[x];
    made.activation = made.offloadable = true;
    made.compared = Comparison::None;
    made.encodings = {{Codec::Fp16, 500, 0.01, 0.01},
                      {Codec::Int8, 266, 0.01, 0.01},
                      {zfp(4), 125, 0.1, 0.1},
                      {zfp(8), 250, 0.1, 0.1}};
    const double sensitivity = i % 2 == 0 ? 10 : 1;
    made.errors = {{Codec::Fp16, 1e-5 * sensitivity},
                   {Codec::Int8, 1e-3 * sensitivity},
                   {zfp(4), 1e-2 * sensitivity},
                   {zfp(8), 5e-4 * sensitivity}};
    op("f" + std::to_string(i), Phase::Forward, i > 0 ? std::vector<int>{x - 1} : std::vector<int>{}, {x});
  }
  int dy = buffer("dy", 10);
  op("loss", Phase::Backward, {layers - 1}, {dy});
  for (int i = layers - 1; i >= 0; --i) {
    const int dx = buffer("d" + std::to_string(i), 10);
    op("b" + std::to_string(i), Phase::Backward, {dy, i}, {dx});
    dy = dx;
  }
  return p;
}

Options lossy() {
  Options options = everythingAllowed({});
  options.allowLossy = {Codec::Fp16, Codec::Int8, Codec::Zfp};
  return options;
}

Plan planOf(const Problem &p, Bytes budget, const std::string &name, const Options &options) {
  Answer answer = runStrategy(p, budget, name, options);
  if (const auto *none = std::get_if<Infeasible>(&answer))
    throw std::runtime_error("needs " + std::to_string(none->smallestMemory));
  if (const auto *refused = std::get_if<Refused>(&answer))
    throw std::runtime_error(refused->reason);
  return std::get<Plan>(answer);
}

TEST(Errors, AddUpAsTheRootOfSquares) {
  Problem p = rowOf(4, 1);
  Plan plan = keepPlan(p);
  EXPECT_EQ(totalError(p, plan), 0);
  plan.decisions[0].action = plan.decisions[1].action = Action::Compress;
  plan.decisions[0].codec = Codec::Int8;
  plan.decisions[1].codec = zfp(4);
  plan.decisions[2].action = Action::Offload; // raw
  plan.decisions[3].action = Action::Offload;
  plan.decisions[3].codec = Codec::Zvc;
  EXPECT_NEAR(totalError(p, plan), std::sqrt(2) * 1e-2, 1e-12);
  plan.decisions[1].codec = zfp(6);
  EXPECT_TRUE(std::isinf(totalError(p, plan))) << "nobody knows it";
}

TEST(Errors, AreUsuallyThoseOfTheCodecInEqualParts) {
  EXPECT_EQ(usualError(Codec::Zvc, 10), 0);
  EXPECT_NEAR(10 * *usualError(Codec::Int8, 100), *usualError(Codec::Int8, 1), 1e-12);
  EXPECT_GT(*usualError(zfp(4), 1), *usualError(zfp(8), 1));
  EXPECT_EQ(usualError(masked(zfp(8)), 9), usualError(zfp(8), 9));
  EXPECT_EQ(usualError(Codec::Zfp, 9), usualError(zfp(8), 9));
  EXPECT_FALSE(usualError({}, 1));
}

/// A plan may be made of forms with rates of their own alone.
TEST(Errors, TheBoundKnowsFormsWithRates) {
  Problem p = rowOf(6, 1);
  for (Buffer &buffer : p.buffers) {
    buffer.offloadable = false;
    buffer.encodings.erase(std::remove_if(buffer.encodings.begin(), buffer.encodings.end(),
                                          [](const Encoding &form) { return form.codec.rate == 0; }),
                           buffer.encodings.end());
  }
  const Options options = lossy();
  const Plan plan = planOf(p, 4500, "mixed", options);
  EXPECT_GT(totalError(p, plan), 0);
  EXPECT_GE(simulate(p, plan).makespan, actionBound(p, 4500, allowedActions(options)) * (1 - 1e-9));
}

TEST(Errors, AreCheckedIndependently) {
  const Bytes roomy = 1 << 20;
  Problem p = rowOf(6, 0.02);
  Plan plan = planOf(p, 4500, "mixed", lossy());
  EXPECT_EQ(messageOf(checkPlan(p, plan, roomy)), "");
  EXPECT_GT(totalError(p, plan), 0);
  p.errorBudget = totalError(p, plan) * 0.99;
  EXPECT_NE(messageOf(checkPlan(p, plan, roomy)).find("errors add up to"), std::string::npos);
  for (Buffer &buffer : p.buffers)
    buffer.errors.clear();
  EXPECT_NE(messageOf(checkPlan(p, plan, roomy)).find("has no error for"), std::string::npos);
  p.errorBudget.reset();
  EXPECT_EQ(messageOf(checkPlan(p, plan, roomy)), "");
}

TEST(Errors, ThatAStrategyCannotMendAreRefused) {
  const Problem p = rowOf(6, 1e-4);
  const Answer answer = runStrategy(p, 3000, "freelunch", lossy());
  EXPECT_FALSE(std::holds_alternative<Plan>(answer) && !withinErrorBudget(p, std::get<Plan>(answer)));
}

TEST(ErrorBudget, GivesSensitiveTensorsTheBetterCodec) {
  const Problem p = rowOf(8, 0.02);
  const Plan plan = planOf(p, 3000, "mixed", lossy());
  EXPECT_LE(totalError(p, plan), 0.02);
  double sensitive = 0, other = 0; // errors as if all tensors were as sensitive as each other
  for (int b = 0; b < 8; ++b)
    (b % 2 == 0 ? sensitive : other) += errorOf(p.buffers[b], plan.decisions[b]) / (b % 2 == 0 ? 10 : 1);
  EXPECT_GT(other, sensitive);
}

TEST(ErrorBudget, IsKeptAndNeverMakesAPlanSlowerWhenItIsLarger) {
  Seconds last = std::numeric_limits<Seconds>::infinity();
  for (double most : {1e-4, 1e-3, 5e-3, 1e-2, 3e-2, 1e-1}) {
    const Problem p = rowOf(8, most);
    const Answer answer = runStrategy(p, 4200, "mixed", lossy());
    const Plan *plan = std::get_if<Plan>(&answer);
    const Seconds span = plan ? simulate(p, *plan).makespan : std::numeric_limits<Seconds>::infinity();
    if (plan) {
      EXPECT_LE(totalError(p, *plan), most);
    }
    EXPECT_LE(span, last * (1 + 1e-9)) << most;
    last = span;
  }
}

TEST(ErrorBudget, OfAnyCodecIsNoSlowerThanOfOne) {
  for (double most : {5e-3, 2e-2, 5e-2})
    for (const Codec::Kind codec : {Codec::Fp16, Codec::Int8, Codec::Zfp}) {
      const Problem p = rowOf(8, most);
      Options one = lossy();
      one.allowLossy = {codec};
      one.knobs["takeover"] = "0";
      Options any = lossy();
      any.knobs["takeover"] = "0";
      const Answer single = runStrategy(p, 4200, "mixed", one), all = runStrategy(p, 4200, "mixed", any);
      if (const Plan *plan = std::get_if<Plan>(&single)) {
        EXPECT_LE(simulate(p, std::get<Plan>(all)).makespan, simulate(p, *plan).makespan * (1 + 1e-9))
            << codecName(codec) << " " << most;
      }
    }
}

/// Codecs of the copies of four layers that all leave.
std::vector<std::string> copyCodecs(double errorBudget, const FormWish &wish) {
  Problem p = rowOf(4, errorBudget);
  p.codecContention = 0.1;
  const std::vector<Accesses> accesses = accessesOf(p);
  const LossyForms forms(p, accesses, allActions());
  Plan plan = keepPlan(p);
  for (int b = 0; b < 4; ++b)
    plan.decisions[b].action = Action::Offload;
  forms.packCopies(wish, plan);
  EXPECT_LE(totalError(p, plan), errorBudget);
  std::vector<std::string> codecs;
  for (int b = 0; b < 4; ++b)
    codecs.push_back(codecName(plan.decisions[b].codec));
  return codecs;
}

TEST(ErrorBudget, GivesCopiesCodecsAndRates) {
  using Codecs = std::vector<std::string>;
  EXPECT_EQ(copyCodecs(1, {}), Codecs(4, "zfp:4"));
  EXPECT_EQ(copyCodecs(2e-2, {}), (Codecs{"zfp:8", "zfp:4", "zfp:8", "zfp:4"})) << "every other tensor is sensitive";
  EXPECT_EQ(copyCodecs(1e-6, {}), Codecs(4, ""));
  FormWish wish;
  wish.only = Codec::Fp16;
  EXPECT_EQ(copyCodecs(1, wish), Codecs(4, "fp16"));
  wish = {};
  wish.link = 0;
  EXPECT_EQ(copyCodecs(1, wish), Codecs(4, "")) << "the link is worth nothing";
  wish = {};
  wish.copied[0] = Codec::Int8;
  EXPECT_EQ(copyCodecs(1, wish), (Codecs{"int8", "zfp:4", "zfp:4", "zfp:4"}));
}

TEST(ErrorBudget, IsKeptOnRandomPrograms) {
  for (unsigned seed = 0; seed < test::instances(8); ++seed) {
    std::mt19937 random(seed);
    test::RandomShape shape;
    shape.codecs = true;
    Problem p = test::randomProblem(seed, shape);
    p.errorBudget = 1e-2;
    for (Buffer &buffer : p.buffers)
      for (const char *what : {"zfp", "mask+zfp", "fp16", "invert"})
        if (random() % 4) {
          const double error = 1e-3 * (random() % 20);
          if (const std::optional<Codec> codec = parseForm(what))
            buffer.errors.emplace_back(*codec, error);
          else if (buffer.inversion)
            buffer.inversion->error = error;
        }
    Options options = everythingAllowed({});
    options.knobs["takeover"] = "0";
    const Bytes keep = std::get<Plan>(runStrategy(p, noBudget, "keep", {})).arenaBytes;
    for (double share : {0.3, 0.6}) {
      const Bytes budget = p.base + static_cast<Bytes>(share * static_cast<double>(keep - p.base));
      const Answer answer = runStrategy(p, budget, "mixed", options);
      if (const Plan *plan = std::get_if<Plan>(&answer)) {
        EXPECT_EQ(messageOf(checkPlan(p, *plan, budget)), "") << seed;
        EXPECT_LE(totalError(p, *plan), 1e-2) << seed;
      }
    }
  }
}

/// With int8 the plan of least memory, as if nothing faster packed; without it keep's.
Answer planSlowlyWithInt8(const Problem &problem, Bytes memory, const Options &options) {
  if (!options.executable.has(Codec::Int8))
    return keepPlan(problem);
  const Strategy &greedy = **findStrategy("greedy", {});
  const Answer none = greedy.plan(problem, 0, options);
  return greedy.plan(problem, std::min(memory, std::get<Infeasible>(none).smallestMemory), options);
}

std::vector<Options> withoutInt8(const Problem &, const Options &options) {
  Options fewer = options;
  fewer.executable.remove(Codec::Int8);
  return {fewer};
}

TEST(ErrorBudget, TakesThePlanOfFewerActionsWhereItIsFaster) {
  const Problem p = rowOf(4, 1e-2);
  Strategy strategy{"slow with int8", "", planSlowlyWithInt8};
  strategy.actions = allActions();
  const auto span = [&] {
    return simulate(p, std::get<Plan>(runStrategy(p, noBudget, strategy, everythingAllowed({})))).makespan;
  };
  const Seconds kept = simulate(p, keepPlan(p)).makespan;
  EXPECT_GT(span(), kept);
  strategy.fewer = withoutInt8;
  EXPECT_EQ(span(), kept);
}

TEST(ErrorBudget, PlansWithEachCodecAloneAndWithNone) {
  const Strategy &mixed = **findStrategy("mixed", {});
  Problem p = rowOf(4, 1e-2);
  Options options;
  options.executable = exactActions() | Abilities{Codec::Fp16, Codec::Int8, Action::Invert};
  const std::vector<Options> sets = mixed.fewer(p, options);
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_TRUE((sets[0].executable & lossyActions()).empty());
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(sets[i].executable.has(Codec::Fp16), i == 1);
    EXPECT_EQ(sets[i].executable.has(Codec::Int8), i == 2);
    EXPECT_TRUE(sets[i].executable.has(Action::Invert));
  }
  p.errorBudget.reset();
  EXPECT_TRUE(mixed.fewer(p, options).empty());
}

TEST(Packings, HaveAllRatesWhereTheyAreAskedFor) {
  const Profile profile = *loadProfile("h200");
  const auto bytesOf = [](Codec codec) -> Bytes { return codec.bits(); };
  const auto names = [&](Comparison compared, bool rates) {
    std::vector<std::string> list;
    for (const Encoding &form : packingsOf(4096, compared, profile, bytesOf, rates))
      list.push_back(codecName(form.codec));
    return list;
  };
  EXPECT_EQ(names(Comparison::None, false), (std::vector<std::string>{"fp16", "zfp", "int8", "bf16"}));
  EXPECT_EQ(names(Comparison::None, true),
            (std::vector<std::string>{"fp16", "zfp", "int8", "bf16", "zfp:4", "zfp:6", "zfp:8", "zfp:12", "zfp:16"}));
  EXPECT_EQ(names(Comparison::AboveZero, true),
            (std::vector<std::string>{"fp16", "int8", "bf16", "mask+zfp", "mask+zfp:4", "mask+zfp:6", "mask+zfp:8",
                                      "mask+zfp:12", "mask+zfp:16"}));
  EXPECT_EQ(names(Comparison::Otherwise, true), (std::vector<std::string>{"fp16", "int8", "bf16"}));
}

} // namespace

} // namespace sluice::planner
