// SPDX-License-Identifier: Apache-2.0
// What the user asks for beyond the model itself, parsed once. importOnnx keeps what passes and codegen read as
// attributes of the module: train.loss, train.optimizer, train.precision, and as flags train.clip_norm,
// train.accumulate, train.average.
#ifndef SLUICE_FRONTEND_TRAINING_SPEC_H
#define SLUICE_FRONTEND_TRAINING_SPEC_H

#include "frontend/Limits.h"
#include "runtime/Result.h"
#include "runtime/TargetTable.h"
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice {

/// SoftmaxCrossEntropy: classes are dimension 1. TokenCrossEntropy: they are the last one.
enum class AttachedLoss { SoftmaxCrossEntropy, TokenCrossEntropy, Mse, BceWithLogits, None };
enum class Optimizer { Sgd, Adam, AdamW, Adagrad, RmsProp, Lamb, Lion };
enum class InitialValues { Keep, Kaiming, Xavier };
/// File: as the node says, see BatchNormForms.
enum class BatchNormMode { File, Train, Frozen };
enum class DropoutMode { Keep, Off };

/// --batch-norm=MODE:REGEX, for BatchNormalization nodes whose name, or whose scale's or output's, matches as a whole.
struct BatchNormRule {
  BatchNormMode mode;
  std::string pattern;
};

struct TrainingSpec {
  AttachedLoss loss = AttachedLoss::SoftmaxCrossEntropy;
  std::string output; ///< --output: the value that the loss is attached to and predictions are; empty: the first output
  std::optional<int64_t> ignoreIndex; ///< --ignore-index: the class id of targets that do not count
  std::vector<double> classWeights;   ///< --class-weights: of a cross-entropy's classes; empty: all count alike
  Optimizer optimizer = Optimizer::Sgd;
  InitialValues init = InitialValues::Keep;
  BatchNormMode batchNorm = BatchNormMode::File;
  std::vector<BatchNormRule> batchNormRules; ///< over batchNorm; of several that match, the last one counts
  DropoutMode dropout = DropoutMode::Keep;
  bool clipNorm = false;          ///< updates wait for all gradients, and clip by their norm
  bool accumulate = false;        ///< gradients are summed over the batches of a step
  bool average = false;           ///< parameters have running averages
  std::string precision = "fp32"; ///< or tf32, bf16, fp16
  bool assumesOpen = false;       ///< --check: open dimensions that no flag fixes are assumed to be of usual extents
  std::optional<int64_t> batch;   ///< --batch: of the inputs that share the first input's batch
  static constexpr int64_t noBatch = -1;
  /// --batch-dim: the dimension of an input, or of the output, that counts the samples, or noBatch: a sample is all of
  /// it.
  std::map<std::string, int64_t> batchDims;
  std::set<std::string> shared; ///< --input NAME=shared: inputs that all samples have in common
  std::map<std::string, int64_t>
      dims; ///< --dim NAME=N; the i-th dimension of input x is called `x[i]` where the file gives no name
  std::vector<std::string> freeze; ///< --freeze: regular expressions of whole names of tensors that are held fixed
  std::vector<std::string> train;  ///< --train: of tensors that are trained whatever rules say; see HandRoles
  Limits limits;
};

/// The words of the command line, as the flags take them. An unknown word is an error that lists the known ones.
Result<AttachedLoss> parseLoss(const std::string &word);
Result<Optimizer> parseOptimizer(const std::string &word);
Result<InitialValues> parseInitialValues(const std::string &word);
/// W0,W1,... or @FILE with a number a line: a weight of 0 or more for each class, one of them above 0.
Result<std::vector<double>> parseClassWeights(const std::string &word);
/// Adds `MODE` or `MODE:REGEX` to the spec.
Status parseBatchNorm(const std::string &word, TrainingSpec &spec);
Result<DropoutMode> parseDropoutMode(const std::string &word);
/// fp32 everywhere, the others on cuda; on the host they are refused as such.
Status checkPrecision(const std::string &word, Target target);
/// Adds `NAME=K` or `NAME=none` to the spec.
Status parseBatchDim(const std::string &argument, TrainingSpec &spec);
/// Adds `NAME=shared` to the spec.
Status parseInput(const std::string &argument, TrainingSpec &spec);
/// Adds `NAME=N` to the spec.
Status parseDim(const std::string &argument, TrainingSpec &spec);

std::string toString(AttachedLoss);
std::string toString(Optimizer);
std::string toString(InitialValues);
std::string toString(BatchNormMode);
std::string toString(DropoutMode);

} // namespace sluice

#endif
