// SPDX-License-Identifier: Apache-2.0
// Programs whose steps take turns (Program::turns): which turn a step is of, and the program as a turn's steps have it.
// The order follows from the number of the step alone, so that a run goes on anywhere in a round.
#pragma once

#include "runtime/Program.h"

#include <string>

namespace sluice {

/// Number of the turn of step `step`, which counts from 1. 0 where all steps are alike.
int turnOf(const Program &program, int64_t step);

/// How many of the first `steps` steps are of this turn.
int64_t stepsOfTurn(const Program &program, int turn, int64_t steps);

/// The program with the outputs and losses of a turn, without turns of its own; where all steps are alike, the program.
Program ofTurn(const Program &program, int turn);

/// "discriminator=1,generator=1": names and steps in a row; empty where all steps are alike.
std::string turnsText(const Program &program);

/// What losses and metrics of a turn are called: "discriminator.loss"; the name alone where all steps are alike.
std::string nameInTurn(const Program &program, int turn, const std::string &name);

} // namespace sluice
