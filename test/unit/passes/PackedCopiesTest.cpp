// SPDX-License-Identifier: Apache-2.0
// What `codec=` makes of copies is a plan that the checker accepts, and each codec that would be wrong is refused.
#include "passes/plan/PackedCopies.h"
#include "passes/planner/Check.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::planner;

namespace {

/// Of two offloaded activations `forward` returns for a forward op, `backward` for a backward op.
struct PackedCopies : testing::Test, test::SmallStep {
  const int forward = buffer(true), backward = buffer(true);
  Plan plan;

  PackedCopies() : SmallStep(1000) {
    const int y = buffer(false);
    op(Phase::Forward, {}, {forward, backward});
    op(Phase::Forward, {}, {y});
    op(Phase::Forward, {forward, y}, {y});
    op(Phase::Backward, {y}, {y});
    op(Phase::Backward, {backward, y}, {y}); // op 4
    for (int b : {forward, backward}) {
      problem.buffers[b].compared = Comparison::None;
      problem.buffers[b].encodings = {{Codec::Int8, 27, 0.01, 0.01}};
    }
    plan.decisions.resize(problem.buffers.size());
    plan.decisions[forward] = {Action::Offload, {}, {{0, 1, 1, 2}}, ""};
    plan.decisions[backward] = {Action::Offload, {}, {{0, 1, 3, 4}}, ""};
    pack(Codec::Int8);
  }

  void pack(Codec::Kind codec) {
    PlanRequest request;
    request.codec = codec;
    packCopies(problem, request, plan);
  }

  std::string message() const { return messageOf(checkPlan(problem, plan, 1 << 20)); }
};

TEST_F(PackedCopies, OfWhatForwardOpsReadAreRaw) {
  EXPECT_EQ(plan.decisions[backward].codec, Codec::Int8);
  EXPECT_FALSE(plan.decisions[forward].codec);
  EXPECT_EQ(message(), "");
  plan.decisions[forward].codec = Codec::Int8;
  EXPECT_EQ(message(), "op 2 'op2' of the forward half uses buffer 'b0' after it came back from int8");
}

TEST_F(PackedCopies, HaveAFormOfTheirCodec) {
  plan.decisions[backward].codec = Codec::Zfp;
  EXPECT_EQ(message(), "buffer 'b1' is copied with codec 'zfp', which the device does not have for it");
}

TEST_F(PackedCopies, HaveACodecWhoseSpeedIsKnown) {
  plan.decisions[backward].codec = {};
  pack(Codec::Fp16);
  EXPECT_FALSE(plan.decisions[backward].codec) << "the profile has no rate";
  problem.codecRates = {{Codec::Fp16, 1e6}};
  pack(Codec::Fp16);
  EXPECT_EQ(plan.decisions[backward].codec, Codec::Fp16);
  EXPECT_EQ(message(), "");
  problem.codecRates.clear();
  EXPECT_EQ(message(), "buffer 'b1' is copied with codec 'fp16', which the device does not have for it");
}

TEST_F(PackedCopies, GoWhereCopiesPack) {
  problem.home = Space::Storage;
  EXPECT_EQ(message(), "");
  plan.decisions[backward].codec = Codec::Zfp;
  EXPECT_EQ(message(), "buffer 'b1' is packed with 'zfp' for the storage arena, whose copies cannot do that");
}

TEST_F(PackedCopies, CountAmongErrors) {
  problem.errorBudget = 0.01;
  problem.buffers[backward].errors = {{Codec::Int8, 0.005}};
  EXPECT_EQ(message(), "");
  problem.errorBudget = 0.001;
  EXPECT_NE(message(), "");
}

} // namespace
