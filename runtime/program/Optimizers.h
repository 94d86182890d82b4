// SPDX-License-Identifier: Apache-2.0
// What each optimizer is called, and its hyperparameters with their defaults: those of torch.optim where that has it.
#pragma once

#include "runtime/Program.h"

namespace sluice {

/// Negative: the optimizer has no such hyperparameter.
struct OptimizerFacts {
  const char *name;
  double learningRate, weightDecay, momentum, beta1, beta2, epsilon, alpha, rateDecay;
};

const OptimizerFacts &factsOf(Program::Optimizer optimizer);

const char *optimizerName(Program::Optimizer optimizer);

} // namespace sluice
