// SPDX-License-Identifier: Apache-2.0
// hascoet, freelunch and gist's precision reduction on a row of layers: what they do with whom, what must be allowed,
// and their chain forms.
#include "passes/planner/Check.h"
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/ChainProblem.h"
#include "test/unit/MessageOf.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace sluice::planner {

/// `blocks` times conv -> norm + LeakyReLU: buffers c_i (conv's output, read by norm's backward) and z_i (the
/// activation, read by the next conv's backward and by its own), a gradient a layer.
static Problem blocksOf(int blocks) {
  Problem p;
  p.alignment = 1;
  p.link = {1000, 1000, 1000, 0};
  p.codecRates = {{Codec::Fp16, 1e5}};
  auto buffer = [&](const std::string &name, bool activation) {
    Buffer b;
    b.name = name;
    b.bytes = 1000;
    b.activation = b.offloadable = activation;
    if (activation)
      b.encodings = {{Codec::Zfp, 200, 0.1, 0.1}, {Codec::Fp16, 500, 0.05, 0.05}};
    p.buffers.push_back(b);
    return static_cast<int>(p.buffers.size()) - 1;
  };
  auto op = [&](const std::string &name, OpKind kind, Phase phase, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.kind = kind;
    o.phase = phase;
    o.seconds = kind == OpKind::Conv ? 1 : 0.1;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    if (phase == Phase::Forward)
      for (int b : o.writes)
        p.buffers[b].producers = {static_cast<int>(p.ops.size())};
    p.ops.push_back(o);
  };
  std::vector<int> c, z = {buffer("z0", true)};
  op("load", OpKind::Other, Phase::Forward, {}, {z[0]});
  for (int i = 0; i < blocks; ++i) {
    c.push_back(buffer("c" + std::to_string(i), true));
    op("conv", OpKind::Conv, Phase::Forward, {z[i]}, {c[i]});
    z.push_back(buffer("z" + std::to_string(i + 1), true));
    op("norm", OpKind::Norm, Phase::Forward, {c[i]}, {z[i + 1]});
    p.buffers[c[i]].inversion = Inversion{{z[i + 1]}, 0.1, 10};
  }
  int dz = buffer("loss gradient", false);
  op("loss", OpKind::Loss, Phase::Backward, {z.back()}, {dz});
  for (int i = blocks - 1; i >= 0; --i) {
    const int dc = buffer("dc" + std::to_string(i), false);
    op("norm.dx", OpKind::Norm, Phase::Backward, {dz, z[i + 1], c[i]}, {dc});
    dz = buffer("dz" + std::to_string(i), false);
    op("conv.dx", OpKind::Conv, Phase::Backward, {dc, z[i]}, {dz});
  }
  return p;
}

static const Decision &decisionOf(const Problem &p, const Plan &plan, const std::string &name) {
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].name == name)
      return plan.decisions[b];
  throw std::invalid_argument(name);
}

static Plan planOf(const Problem &p, Bytes memory, const std::string &name, const Options &options) {
  const Answer answer = runStrategy(p, memory, name, options);
  EXPECT_TRUE(std::holds_alternative<Plan>(answer));
  const Plan plan = std::holds_alternative<Plan>(answer) ? std::get<Plan>(answer) : keepPlan(p);
  EXPECT_EQ(messageOf(checkPlan(p, plan, memory)), "");
  EXPECT_EQ(messageOf(checkTimeline(p, plan, simulate(p, plan))), "");
  return plan;
}

TEST(Hascoet, OffloadsInputsOfConvolutionsInHalfPrecisionAndInvertsNorms) {
  const Problem p = blocksOf(6);
  const Plan plan = planOf(p, 7000, "hascoet", everythingAllowed({}));
  EXPECT_EQ(decisionOf(p, plan, "z1").action, Action::Offload);
  EXPECT_EQ(decisionOf(p, plan, "z1").codec, Codec::Fp16);
  EXPECT_EQ(decisionOf(p, plan, "c0").action, Action::Invert);
  EXPECT_EQ(simulate(p, plan).hostBytes, 6 * 500 - 500 * (decisionOf(p, plan, "z5").action == Action::Keep));
  Options raw = everythingAllowed({});
  raw.knobs = {{"fp16", "0"}, {"invert", "0"}};
  const Plan ablated = planOf(p, 20000, "hascoet", raw);
  EXPECT_EQ(decisionOf(p, ablated, "z1").codec, Codec::None);
  EXPECT_EQ(decisionOf(p, ablated, "c0").action, Action::Keep);
}

TEST(Hascoet, RefusesByTheNameOfTheActionThatMustBeAllowed) {
  Options options = everythingAllowed({});
  options.allowLossy = {Action::Invert};
  Answer answer = runStrategy(blocksOf(2), 100000, "hascoet", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(answer));
  EXPECT_NE(std::get<Refused>(answer).reason.find("--allow-lossy=fp16"), std::string::npos);
  options.knobs["fp16"] = "0";
  EXPECT_TRUE(std::holds_alternative<Plan>(runStrategy(blocksOf(2), 100000, "hascoet", options)));
  options.executable.remove(Action::Invert);
  answer = runStrategy(blocksOf(2), 100000, "hascoet", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(answer));
  EXPECT_NE(std::get<Refused>(answer).reason.find("target"), std::string::npos);
}

TEST(FreeLunch, CompressesEveryActivationAndNeedsLessThanKeep) {
  const Problem p = blocksOf(8);
  const Bytes keep = std::get<Plan>(runStrategy(p, 1 << 30, "keep")).arenaBytes;
  const Plan plan = planOf(p, keep * 6 / 10, "freelunch", everythingAllowed({}));
  EXPECT_EQ(decisionOf(p, plan, "c2").action, Action::Compress);
  EXPECT_EQ(decisionOf(p, plan, "z3").codec, Codec::Zfp);
  Options options = everythingAllowed({});
  options.allowLossy = {};
  const Answer answer = runStrategy(p, keep, "freelunch", options);
  ASSERT_TRUE(std::holds_alternative<Refused>(answer));
  EXPECT_NE(std::get<Refused>(answer).reason.find("--allow-lossy=zfp"), std::string::npos);
}

TEST(FreeLunch, FewerBuffersNeedLessMemoryAndWaitLonger) {
  Problem p = blocksOf(8);
  for (Buffer &b : p.buffers)
    for (Encoding &e : b.encodings)
      e.encodeSeconds = 0.6; // slower than the norms, faster than two layers
  Options options = everythingAllowed({});
  options.knobs["buffers"] = "1";
  const Plan one = planOf(p, 1 << 20, "freelunch", options);
  options.knobs["buffers"] = "4";
  const Plan four = planOf(p, 1 << 20, "freelunch", options);
  const size_t middle = 9; // of the forward half
  EXPECT_LT(liveBytes(p, expand(p, one))[middle], liveBytes(p, expand(p, four))[middle]);
  EXPECT_GT(simulate(p, one).makespan, simulate(p, four).makespan);
}

TEST(FreeLunch, HybridSwapsWhatNoConvolutionWrote) {
  const Problem p = blocksOf(6);
  Options options = everythingAllowed({});
  options.knobs["hybrid"] = "1";
  const Plan plan = planOf(p, 1 << 20, "freelunch", options);
  EXPECT_EQ(decisionOf(p, plan, "c1").action, Action::Compress);
  EXPECT_EQ(decisionOf(p, plan, "z1").action, Action::Offload);
  EXPECT_EQ(decisionOf(p, plan, "z1").codec, Codec::None);
}

// Every z is compared with 0 by the norm after it, every c by nobody.
static Problem signsAsked(int blocks) {
  Problem p = blocksOf(blocks);
  for (int b = 0; b < static_cast<int>(p.buffers.size()); ++b) {
    Buffer &z = p.buffers[b];
    if (!z.activation || z.name[0] != 'z')
      continue;
    Encoding signs{masked(Codec::Zfp), 240, 0.1, 0.1};
    for (int k = 0; k < static_cast<int>(p.ops.size()); ++k)
      if (p.ops[k].phase == Phase::Backward && p.ops[k].kind == OpKind::Norm &&
          std::count(p.ops[k].reads.begin(), p.ops[k].reads.end(), b) > 0)
        signs.maskReaders.push_back(k);
    z.encodings = {signs};
  }
  return p;
}

TEST(FreeLunch, PacksWithSignsWhereGradientsAskForThem) {
  const Problem p = signsAsked(8);
  const Bytes keep = std::get<Plan>(runStrategy(p, 1 << 30, "keep")).arenaBytes;
  const Plan plan = planOf(p, keep * 6 / 10, "freelunch", everythingAllowed({}));
  EXPECT_EQ(decisionOf(p, plan, "z3").codec, masked(Codec::Zfp));
  EXPECT_EQ(decisionOf(p, plan, "c2").codec, Codec::Zfp);
  Options options = everythingAllowed({});
  options.allowLossy.remove(Codec::Zfp); // with a mask, too
  EXPECT_TRUE(std::holds_alternative<Refused>(runStrategy(p, keep, "freelunch", options)));
}

// z3 comes back for the convolution that read it; the norm's gradient takes the mask, beside which the bytes are gone.
TEST(FreeLunch, ValuesDoNotStayForReadersOfTheMask) {
  const Problem p = signsAsked(8);
  const Plan plan = planOf(p, 1 << 20, "freelunch", everythingAllowed({}));
  const Program program = expand(p, plan);
  int z3 = 0;
  while (p.buffers[z3].name != "z3")
    ++z3;
  const int reader = p.buffers[z3].encodings[0].maskReaders.back(), values = plan.decisions[z3].absences[0].neededBy;
  ASSERT_EQ(plan.decisions[z3].action, Action::Compress);
  ASSERT_LT(values, reader);
  int lastRaw = -1, lastPacked = -1;
  for (const Life &life : program.lives)
    if (life.buffer == z3)
      (life.form == Life::Form::Raw ? lastRaw : lastPacked) = life.last;
  EXPECT_EQ(lastRaw, program.stepOf[values]);
  EXPECT_EQ(lastPacked, program.stepOf[reader]);
}

TEST(FreeLunch, LeavesAMaskWhereItIsEnough) {
  Problem p = blocksOf(8);
  p.buffers[2].encodings.push_back({Codec::Mask, 32, 0, 0});
  EXPECT_EQ(planOf(p, 1 << 20, "freelunch", everythingAllowed({})).decisions[2].action, Action::Encode);
  Options options = everythingAllowed({});
  options.knobs["masks"] = "0";
  EXPECT_EQ(planOf(p, 1 << 20, "freelunch", options).decisions[2].codec, Codec::Zfp);
}

// Raw buffers and tensors ahead are of all feature maps: who else leaves when does not hang on how one is kept.
TEST(FreeLunch, ATensorOfWhichAMaskStaysFillsABufferAndIsCountedAhead) {
  Problem p = blocksOf(8);
  for (int b : {2, 8})
    p.buffers[b].encodings.push_back({Codec::Mask, 32, 0, 0});
  Options options = everythingAllowed({});
  const Plan masks = planOf(p, 1 << 20, "freelunch", options);
  options.knobs["masks"] = "0";
  const Plan packed = planOf(p, 1 << 20, "freelunch", options);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (b == 2 || b == 8)
      continue;
    SCOPED_TRACE(p.buffers[b].name);
    ASSERT_EQ(masks.decisions[b].absences.size(), packed.decisions[b].absences.size());
    for (size_t i = 0; i < packed.decisions[b].absences.size(); ++i) {
      EXPECT_EQ(masks.decisions[b].absences[i].freeBefore, packed.decisions[b].absences[i].freeBefore);
      EXPECT_EQ(masks.decisions[b].absences[i].returnAfter, packed.decisions[b].absences[i].returnAfter);
    }
  }
}

TEST(FreeLunch, WhatThePeakHasRoomForMayStay) {
  Problem p = blocksOf(8);
  p.buffers[3].bytes = 6000; // the peak is where this one is
  p.buffers[3].encodings[0].bytes = 1200;
  Options options = everythingAllowed({});
  const Plan all = planOf(p, 1 << 20, "freelunch", options);
  options.knobs["stay"] = "1";
  const Plan few = planOf(p, 1 << 20, "freelunch", options);
  EXPECT_LE(few.peakBytes, all.peakBytes);
  auto packed = [](const Plan &plan) {
    return std::count_if(plan.decisions.begin(), plan.decisions.end(),
                         [](const Decision &d) { return d.action == Action::Compress; });
  };
  EXPECT_LT(packed(few), packed(all));
  EXPECT_EQ(decisionOf(p, few, "c1").action, Action::Compress);
}

TEST(Gist, ReducesPrecisionOnlyWhenAskedAndAllowed) {
  Problem p = blocksOf(6);
  p.buffers[2].encodings.push_back({Codec::Mask, 32, 0, 0});
  Options options = everythingAllowed({});
  const Plan exact = planOf(p, 1 << 20, "gist", options);
  EXPECT_EQ(exact.decisions[2].codec, Codec::Mask);
  EXPECT_EQ(decisionOf(p, exact, "c3").action, Action::Keep);
  options.knobs["dpr"] = "1";
  const Plan reduced = planOf(p, 1 << 20, "gist", options);
  EXPECT_EQ(reduced.decisions[2].codec, Codec::Mask);
  EXPECT_EQ(decisionOf(p, reduced, "c3").action, Action::Compress);
  EXPECT_LT(reduced.peakBytes, exact.peakBytes);
  options.allowLossy = {};
  EXPECT_TRUE(std::holds_alternative<Refused>(runStrategy(p, 1 << 20, "gist", options)));
}

TEST(LossyChains, PlanAsPublishedAndNameWhatTheyMiss) {
  Chain c;
  for (int i = 0; i < 8; ++i) {
    c.uF.push_back(i % 2 ? 1 : 8);
    c.uB.push_back(i % 2 ? 2 : 16);
    c.kinds.push_back(i % 2 ? OpKind::Norm : OpKind::Conv);
  }
  c.exF = c.exB = c.saved = std::vector<double>(8, 0);
  c.x = c.y = std::vector<double>(9, 10);
  c.bandwidth = 0.5;
  const ChainAnswer hascoet = runStrategy(c, 60, Release::Whole, "hascoet");
  ASSERT_TRUE(std::holds_alternative<ChainPlan>(hascoet));
  EXPECT_EQ(std::get<ChainPlan>(hascoet).actions[1], Action::Invert);
  EXPECT_EQ(std::get<ChainPlan>(hascoet).actions[2], Action::Offload);
  // Half the bytes cross the link: the same set at full width takes longer.
  Options raw;
  raw.knobs["fp16"] = "0";
  EXPECT_LT(std::get<ChainPlan>(hascoet).timeline.makespan,
            std::get<ChainPlan>(runStrategy(c, 60, Release::Whole, "hascoet", raw)).timeline.makespan);
  const ChainAnswer lunch = runStrategy(c, 70, Release::Whole, "freelunch");
  ASSERT_TRUE(std::holds_alternative<ChainPlan>(lunch));
  EXPECT_EQ(std::get<ChainPlan>(lunch).actions[2], Action::Compress);
  for (const char *name : {"hascoet", "freelunch"})
    EXPECT_LE(strategyBound(c, 70, name),
              std::get<ChainPlan>(runStrategy(c, 70, Release::Whole, name)).timeline.makespan);
  c.kinds.clear();
  EXPECT_TRUE(std::holds_alternative<Refused>(runStrategy(c, 60, Release::Whole, "hascoet")));
}

} // namespace sluice::planner
