// SPDX-License-Identifier: Apache-2.0
// The words of --turn.
#include "frontend/TrainingSpec.h"

#include <gmock/gmock.h>

using namespace sluice;
using testing::HasSubstr;

TEST(Turns, HaveLossesStepsAndParameters) {
  TrainingSpec spec;
  ASSERT_TRUE(
      parseTurns({"critic,loss=loss_c,steps=5,train=critic[.]{1,2}.*", "generator,loss=loss_g,train=g.*"}, spec));
  ASSERT_EQ(spec.turns.size(), 2u);
  EXPECT_EQ(spec.turns[0].name, "critic");
  EXPECT_EQ(spec.turns[0].steps, 5);
  EXPECT_EQ(spec.turns[0].train, "critic[.]{1,2}.*"); // commas and all
  ASSERT_EQ(spec.turns[0].losses.size(), 1u);
  EXPECT_EQ(spec.turns[0].losses[0].kind, AttachedLoss::None);
  EXPECT_EQ(spec.turns[0].losses[0].output, "loss_c");
  EXPECT_EQ(spec.turns[1].steps, 1);
  EXPECT_TRUE(endsInOwnLoss(spec));
  EXPECT_TRUE(isOwnLoss(spec, "loss_g"));
  EXPECT_FALSE(isOwnLoss(spec, "fake"));
  EXPECT_EQ(lossesOf(spec).size(), 2u);
  EXPECT_EQ(lossesOf(specOfTurn(spec, spec.turns[1]))[0].output, "loss_g");
}

/// Targets of two turns are told apart by the outputs that they are compared with.
TEST(Turns, AttachLosses) {
  TrainingSpec spec;
  ASSERT_TRUE(parseTurns({"a,loss=real=bce-with-logits,loss=fake=bce-with-logits,weight=0.5,steps=2,train=a.*",
                          "b,loss=fake=mse,target=wanted,train=b.*"},
                         spec));
  const std::vector<OutputLoss> &losses = spec.turns[0].losses;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].target, "target_real");
  EXPECT_EQ(losses[1].weight, 0.5);
  EXPECT_EQ(spec.turns[0].steps, 2);
  EXPECT_EQ(spec.turns[1].losses[0].target, "wanted");
  EXPECT_FALSE(endsInOwnLoss(spec));
}

TEST(Turns, RefuseWhatMakesNone) {
  const auto refused = [](const std::string &word, const char *message) {
    TrainingSpec spec;
    const Status status = parseTurns({word, "other,loss=y,train=x"}, spec);
    ASSERT_FALSE(status) << word;
    EXPECT_THAT(status.error(), HasSubstr(message));
  };
  refused("a,loss=y", "does not end in train=REGEX");
  refused("a,loss=y,train=", "does not end in train=REGEX");
  refused("a,train=x", "has no loss");
  refused("2a,loss=y,train=x", "'2a' is no name of letters, digits and _");
  refused(",loss=y,train=x", "'' is no name of letters, digits and _");
  refused("a-b,loss=y,train=x", "'a-b' is no name of letters, digits and _");
  refused("a,loss=y,steps=0,train=x", "'steps=0' is no number of steps from 1 to 1048576");
  refused("a,loss=y,lr=0.1,train=x", "'lr=0.1' is neither loss=OUTPUT nor steps=K");
  refused("a,loss=y,loss=z,train=x", "loss=y is the model's own loss, which stands alone");
  refused("a,loss=y=none,train=x", "none has no output");
  refused("a,loss=y=l1,train=x", "--turn a: --loss");
  refused("other,loss=y,train=x", "--turn other is given twice");
  TrainingSpec spec;
  const Status alone = parseTurns({"a,loss=y,train=x"}, spec);
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error(), HasSubstr("is the only turn"));
}
