// SPDX-License-Identifier: Apache-2.0
// In the order of Program::Optimizer. Of LAMB: the defaults of NVIDIA's apex; of Lion: the paper's.

#include "runtime/program/Optimizers.h"

namespace sluice {

const OptimizerFacts &factsOf(Program::Optimizer optimizer) {
  constexpr double no = -1;
  static const OptimizerFacts table[] = {
      // name, learningRate, weightDecay, momentum, beta1, beta2, epsilon, alpha, rateDecay
      {"sgd", 0.01, 0, 0.9, no, no, no, no, no},
      {"adam", 0.001, 0, no, 0.9, 0.999, 1e-8, no, no},
      {"adamw", 0.001, 0.01, no, 0.9, 0.999, 1e-8, no, no},
      {"adagrad", 0.01, 0, no, no, no, 1e-10, no, 0},
      {"rmsprop", 0.01, 0, 0, no, no, 1e-8, 0.99, no},
      {"lamb", 0.001, 0.01, no, 0.9, 0.999, 1e-6, no, no},
      {"lion", 0.0001, 0, no, 0.9, 0.99, no, no, no},
  };
  return table[static_cast<size_t>(optimizer)];
}

const char *optimizerName(Program::Optimizer optimizer) { return factsOf(optimizer).name; }

} // namespace sluice
