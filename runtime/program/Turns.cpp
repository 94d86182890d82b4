// SPDX-License-Identifier: Apache-2.0
// A round is as long as all turns together.
#include "runtime/program/Turns.h"

#include "runtime/Errors.h"

#include <algorithm>

namespace sluice {

static int64_t roundOf(const Program &program) {
  int64_t steps = 0;
  for (int i = 0; i < program.turnCount; ++i)
    steps += program.turns[i].steps;
  return steps;
}

int turnOf(const Program &program, int64_t step) {
  if (program.turnCount == 0)
    return 0;
  int turn = 0;
  for (int64_t place = (step - 1) % roundOf(program); place >= program.turns[turn].steps; ++turn)
    place -= program.turns[turn].steps;
  return turn;
}

int64_t stepsOfTurn(const Program &program, int turn, int64_t steps) {
  if (program.turnCount == 0)
    return steps;
  int64_t before = 0;
  for (int i = 0; i < turn; ++i)
    before += program.turns[i].steps;
  const int64_t round = roundOf(program), own = program.turns[turn].steps;
  return steps / round * own + std::clamp<int64_t>(steps % round - before, 0, own);
}

Program ofTurn(const Program &program, int turn) {
  Program own = program;
  if (program.turnCount == 0)
    return own;
  const TrainingTurn &one = program.turns[turn];
  own.outputs = one.outputs;
  own.outputCount = one.outputCount;
  own.otherMean = one.otherMean;
  own.classWeights = one.classWeights;
  if (!one.countsAnswers)
    own.correct = {};
  own.predictedSecondsPerStep = one.predictedSecondsPerStep;
  own.turns = nullptr;
  own.turnCount = 0;
  own.ownTurn = turn;
  return own;
}

std::string turnsText(const Program &program) {
  std::string list;
  for (int i = 0; i < program.turnCount; ++i)
    list += text(list.empty() ? "" : ",", program.turns[i].name, "=", program.turns[i].steps);
  return list;
}

std::string nameInTurn(const Program &program, int turn, const std::string &name) {
  return program.turnCount == 0 ? name : text(program.turns[turn].name, ".", name);
}

} // namespace sluice
