// SPDX-License-Identifier: Apache-2.0
// Sets of what plans may do, and their words.
#include "passes/planner/Words.h"
#include "passes/strategies/Strategies.h"

#include <gtest/gtest.h>

namespace sluice::planner {

using Names = std::vector<std::string>;

TEST(Abilities, OfACodecAreOfAllItsRatesAndOfItsMask) {
  const Abilities some = {Action::Offload, Codec::Zfp};
  for (const char *form : {"zfp", "zfp:4", "mask+zfp:12"})
    EXPECT_TRUE(some.has(*parseForm(form))) << form;
  EXPECT_TRUE(some.has(Action::Offload));
  for (const Ability other : {Ability(Action::Recompute), Ability(Codec::Mask), Ability::algorithms()})
    EXPECT_FALSE(some.has(other));
  EXPECT_FALSE(some.has(Codec())) << "no codec is none of them";
}

TEST(Abilities, AreSets) {
  Abilities some = {Action::Offload, Codec::Fp16};
  EXPECT_EQ(abilityNames(some | Abilities{Action::Invert}), (Names{"fp16", "offload", "invert"}));
  EXPECT_EQ(abilityNames(some - lossyActions()), Names{"offload"});
  EXPECT_EQ(abilityNames(some & lossyActions()), Names{"fp16"});
  some.remove(Codec::Fp16);
  EXPECT_FALSE(some.empty());
  some.remove(Action::Offload);
  EXPECT_TRUE(some.empty());
  EXPECT_TRUE((exactActions() & lossyActions()).empty());
}

TEST(Abilities, ThatRoundAreReadByName) {
  EXPECT_EQ(abilityNames(lossyActions()), (Names{"fp16", "zfp", "int8", "bf16", "invert"}));
  EXPECT_EQ(abilityNames(*parseLossy("invert,int8,algorithms")), (Names{"int8", "invert", "algorithms"}));
  EXPECT_TRUE(parseLossy("")->empty());
  for (const char *wrong : {"fp17", "zvc", "offload", "zfp:4", "mask+zfp", "fp16,,int8"}) {
    const Result<Abilities> lossy = parseLossy(wrong);
    ASSERT_FALSE(lossy) << wrong;
    EXPECT_NE(lossy.error().find("there are fp16, zfp, int8, bf16, invert and algorithms"), std::string::npos);
  }
}

TEST(Abilities, AreOffWhereTheyRoundAndAreNotNamed) {
  Options options;
  options.executable = allActions();
  options.allowLossy = {Codec::Int8, Ability::algorithms()};
  EXPECT_EQ(abilityNames(allowedActions(options)),
            (Names{"zvc", "int8", "mask", "argmax", "counter", "keep", "offload", "recompute"}));
}

} // namespace sluice::planner
