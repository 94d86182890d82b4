// SPDX-License-Identifier: Apache-2.0
// The command line of a generated program; the table of its flags is in FlagTable.cpp. What is parsed is validated; a
// flag that this program cannot honour is refused, never ignored.
#pragma once

#include "runtime/data/ClassNames.h"
#include "runtime/program/Optimizers.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice {

struct Arguments {
  std::string name; ///< of the program, for messages
  std::string path; ///< by which it was started, for commands
  std::optional<std::string> data, augment, mean, std, onBadData, evaluate, metrics, best, predict, generate, output;
  std::optional<int64_t> workers;
  std::optional<double> validationSplit; ///< percent
  std::optional<std::string> log, tensorboard, report, trace, checkpoint, resume, exportTo, recipe, dumpGradients,
      profileOut, offloadTo;
  std::optional<int64_t> steps, epochs, checkpointEvery, keepCheckpoints, threads, evaluateEvery, patience,
      profileErrors, tokens, topK;
  std::optional<uint64_t> seed;
  std::optional<double> learningRate, momentum, weightDecay, beta1, beta2, epsilon, alpha, rateDecay;
  std::optional<std::string> schedule, warmup, lossScale;
  std::optional<int64_t> accumulate;
  std::optional<double> minimumRate, clipValue, clipNorm, averageDecay, labelSmoothing, mixup, temperature, topP;
  std::vector<std::string> init, groups, inputs, classes, columns, categorical, pads, stops;
  std::string knownColumns;                 ///< of the weights, see TableColumns::known()
  std::string maskValues;                   ///< of the weights, see Preparation
  ClassNames weightClasses, offeredClasses; ///< of the weights, for their data and for others
  std::set<std::string> carried; ///< of --mean, --std, --augment, --input those that are of the weights, not given
  bool nesterov = false, shuffle = false, plan = false, noGraph = false, force = false, help = false, version = false,
       quiet = false, checkpointTrainedOnly = false, standardize = false, roofline = false, cutLong = false;
  bool leads = true; ///< of several ranks, the one that writes

  /// The program prints something of itself and does nothing else.
  bool explains() const { return help || plan || version; }

  /// Hyperparameters with the optimizer's defaults filled in, the rate as --lr says it, no smoothing of labels;
  /// counters are zero.
  StepState stepState(Program::Optimizer optimizer) const;
};

/// With what --recipe says. Throws UsageError, and DataError where it is the recipe that is wrong. What
/// explains() switches the checks for missing flags off.
Arguments parseArguments(int argc, const char *const *argv, const Program &program);

/// Throws UsageError for hyperparameters that the program's optimizer does not have, or that it was not compiled for.
void checkHyperparameters(const Arguments &arguments, const Program &program);

/// The text of --help.
std::string helpText(const std::string &name, const Program &program);

} // namespace sluice
