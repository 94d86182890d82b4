// SPDX-License-Identifier: Apache-2.0
// Steps that take turns: whose each is, and how many of them the first ones are.
#include "runtime/program/Turns.h"

#include <gmock/gmock.h>

namespace sluice {

namespace {

using testing::ElementsAre;

const Output ofCritic[] = {{"scores"}}, ofGenerator[] = {{"fake"}, {"more"}};
const TrainingTurn turns[] = {{"critic", 3, ofCritic, 1, true, nullptr, false, 2.0},
                              {"generator", 2, ofGenerator, 2, false, nullptr, true, 1.0}};

Program programOf(int count) {
  Program program = {};
  program.turns = turns;
  program.turnCount = count;
  program.correct.present = true;
  return program;
}

} // namespace

TEST(Turns, FollowFromTheNumberOfTheStep) {
  const Program program = programOf(2);
  std::vector<int> found;
  for (int64_t step = 1; step <= 12; ++step)
    found.push_back(turnOf(program, step));
  EXPECT_THAT(found, ElementsAre(0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0));
  EXPECT_EQ(turnsText(program), "critic=3,generator=2");
  EXPECT_EQ(nameInTurn(program, 1, "loss"), "generator.loss");
}

/// What bias corrections and schedules count.
TEST(Turns, CountTheirOwnSteps) {
  const Program program = programOf(2);
  int64_t counted[2] = {};
  for (int64_t step = 0; step <= 1000; ++step) {
    EXPECT_EQ(stepsOfTurn(program, 0, step), counted[0]) << step;
    EXPECT_EQ(stepsOfTurn(program, 1, step), counted[1]) << step;
    ++counted[turnOf(program, step + 1)];
  }
}

TEST(Turns, AreOneWhereAllStepsAreAlike) {
  const Program program = programOf(0);
  EXPECT_EQ(turnOf(program, 7), 0);
  EXPECT_EQ(stepsOfTurn(program, 0, 7), 7);
  EXPECT_EQ(turnsText(program), "");
  EXPECT_EQ(nameInTurn(program, 0, "loss"), "loss");
  EXPECT_EQ(ofTurn(program, 0).ownTurn, -1);
}

TEST(Turns, HaveOutputsOfTheirOwn) {
  const Program critic = ofTurn(programOf(2), 0), generator = ofTurn(programOf(2), 1);
  EXPECT_EQ(critic.outputs, ofCritic);
  EXPECT_EQ(critic.outputCount, 1);
  EXPECT_TRUE(critic.otherMean);
  EXPECT_FALSE(critic.correct.present);
  EXPECT_TRUE(generator.correct.present);
  EXPECT_EQ(generator.outputCount, 2);
  EXPECT_EQ(generator.ownTurn, 1);
  EXPECT_EQ(generator.turnCount, 0);
}

} // namespace sluice
