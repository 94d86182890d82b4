// SPDX-License-Identifier: Apache-2.0
// What the user asks for beyond the model itself, parsed once. importOnnx keeps what passes and codegen read as
// attributes of the module, which ir/TrainDialect.td lists.
#ifndef SLUICE_FRONTEND_TRAINING_SPEC_H
#define SLUICE_FRONTEND_TRAINING_SPEC_H

#include "frontend/Limits.h"
#include "frontend/NamePatterns.h"
#include "runtime/Quantization.h"
#include "runtime/Result.h"
#include "runtime/TargetTable.h"
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice {

/// SoftmaxCrossEntropy: classes are dimension 1. TokenCrossEntropy, Ctc: they are the last one.
enum class AttachedLoss { SoftmaxCrossEntropy, TokenCrossEntropy, Mse, BceWithLogits, Ctc, None };
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

/// What a CTC loss needs to know of its targets.
struct CtcOptions {
  int64_t blank = 0;         ///< class of no label
  int64_t length = 0;        ///< the most labels of a target, which data pad to; 0: not said
  bool zeroInfinity = false; ///< targets too long for their inputs count 0 instead of infinity
  std::string inputLengths;  ///< name of the input that says how many steps of a sample count; empty: all
  std::string targetLengths; ///< name of the input that says how many labels a target has; empty: up to the padding
};

/// A loss, and the value of the graph that it is attached to.
struct OutputLoss {
  AttachedLoss kind = AttachedLoss::SoftmaxCrossEntropy;
  std::string output;                 ///< empty: that of --output
  std::string target = "target";      ///< what data call the values that it compares with
  double weight = 1;                  ///< in the sum of all losses
  std::optional<int64_t> ignoreIndex; ///< class id, or number, of targets that do not count
  std::vector<double> classWeights;   ///< of a cross-entropy; empty: all count alike
  std::vector<double> posWeights;     ///< of the answer yes, of all classes or of each; empty: 1
  CtcOptions ctc = {};
};

/// The words of --turn.
constexpr char turnForm[] = "NAME,loss=OUTPUT[=NAME...][,steps=K],train=REGEX";

/// --turn: steps with losses and parameters of their own, which alternate with those of other turns; see ir/Buckets.h.
struct TurnRequest {
  static constexpr int64_t mostSteps = 1 << 20;

  std::string name;               ///< letters, digits and _
  std::vector<OutputLoss> losses; ///< one alone if the model's own is among them
  std::string train;              ///< regular expression of whole names of parameters
  int64_t steps = 1;              ///< in a row, before those of the next turn
};

/// Whether targets of bce-with-logits mean something by this number.
constexpr bool isAnswer(int64_t number) { return number == 0 || number == 1; }

/// The words of --adapter.
constexpr char adapterForm[] = "lora|dora[,rank=N][,alpha=X][,dropout=P][,rslora][,targets=REGEX]";

/// --adapter=lora,...: adapters that the model does not have; see AdapterInsertion.h.
struct AdapterRequest {
  static constexpr int64_t largestRank = 1 << 16;

  bool hasMagnitude = false; ///< dora: weights and adapter together are brought to a length that is trained
  int64_t rank = 8;
  double alpha = 16;
  bool rootOfRank = false; ///< the scale is alpha / sqrt(rank) instead of alpha / rank (rsLoRA)
  double dropout = 0;      ///< of what the adapter reads, in [0, 1)
  std::string targets;     ///< regular expression of whole names of weights; empty: all matrices but the last layer's
};

/// The narrow matrices of an adapter, A and B, and the lengths of DoRA.
enum class AdapterPart { First, Second, Magnitude };

/// The words of --frozen.
constexpr char frozenForm[] = "bf16|int8|int4|nf4[,group=N][,asymmetric]";

/// --frozen: the form of weights that are held fixed, see runtime/Quantization.h.
struct FrozenForm {
  static constexpr int64_t largestGroup = 1 << 20;

  std::string word; ///< bf16, int8, int4 or nf4
  int bits = 8;
  int64_t group = 64; ///< not of bf16
  Coding coding = Coding::Symmetric;
};

/// What to train and how, by the flags of sluicec, as far as the import is concerned.
struct TrainingSpec {
  static constexpr size_t mostLosses = 32, mostTurns = 16;

  AttachedLoss loss = AttachedLoss::SoftmaxCrossEntropy;
  std::vector<OutputLoss> losses; ///< --loss as words say it: in place of `loss`
  std::vector<TurnRequest> turns; ///< --turn, in their order: in place of both
  std::string output; ///< --output: the value that the loss is attached to and predictions are; empty: the first output
  std::optional<int64_t> ignoreIndex; ///< --ignore-index: of losses that know one, unless they have their own
  std::vector<double> classWeights;   ///< --class-weights: of cross-entropies, unless they have their own
  Optimizer optimizer = Optimizer::Sgd;
  InitialValues init = InitialValues::Keep;
  BatchNormMode batchNorm = BatchNormMode::File;
  int normRanks = 0; ///< --batch-norm=synchronized: ranks whose batches are normalized together; 0: each by itself
  std::vector<BatchNormRule> batchNormRules; ///< over batchNorm; of several that match, the last one counts
  DropoutMode dropout = DropoutMode::Keep;
  bool clipNorm = false;   ///< updates wait for all gradients, and clip by their norm
  bool accumulate = false; ///< gradients are summed over the batches of a step
  int64_t batchSums = 1;   ///< of several ranks: the digits of their counter, see ir/CollectiveOps.td
  std::string ranks;       ///< --ranks: how these sum, "ordered" or "fast"; empty: the program is for one process
  bool average = false;    ///< parameters have running averages
  std::string precision = "fp32"; ///< or tf32, bf16, fp16
  bool assumesOpen =
      false; ///< --check, --list-parameters: open dimensions that no flag fixes are assumed to be of usual extents
  bool sharesGradients = false;  ///< --shard=gradients: ranks have shares of these, too
  bool sharesParameters = false; ///< --shard=parameters: of these as well
  int shares = 0;                ///< --shard: how many ranks have shares of the optimizer's states at least; 0: none
  std::optional<int64_t> batch;  ///< --batch: of the inputs that share the first input's batch
  static constexpr int64_t noBatch = -1;
  /// --batch-dim: the dimension of an input, or of the output, that counts the samples, or noBatch: a sample is all of
  /// it.
  std::map<std::string, int64_t> batchDims;
  std::set<std::string> shared; ///< --input NAME=shared: inputs that all samples have in common
  std::map<std::string, int64_t>
      dims; ///< --dim NAME=N; the i-th dimension of input x is called `x[i]` where the file gives no name
  std::vector<NamePattern> freeze; ///< --freeze: regular expressions of whole names of tensors that are held fixed
  std::vector<NamePattern> train;  ///< --train: of tensors that are trained whatever rules say; see HandRoles
  std::optional<AdapterRequest> adapter;           ///< --adapter
  std::map<std::string, AdapterPart> adapterParts; ///< the tensors that it came to in the file at hand
  std::set<std::string> detached;                  ///< results of Identity nodes that no gradient passes
  Limits limits;
  std::optional<FrozenForm> frozen; ///< --frozen
};

/// What is attached, one loss or several; one alone has an empty output where --output does not say it. Those of all
/// turns where there are some.
std::vector<OutputLoss> lossesOf(const TrainingSpec &spec);
/// Whether the model ends in its own loss, in any of its turns.
bool endsInOwnLoss(const TrainingSpec &spec);
/// Whether this output is the model's own loss.
bool isOwnLoss(const TrainingSpec &spec, const std::string &output);
/// The spec of a program that has the steps of one turn alone.
TrainingSpec specOfTurn(const TrainingSpec &spec, const TurnRequest &turn);

/// Takes the words of --loss, `[OUTPUT=]NAME[,option=value...]` each; more than one name their outputs.
Status parseLosses(const std::vector<std::string> &words, TrainingSpec &spec);

/// Takes the words of --turn, two at least, see turnForm; the expression is the rest of a word.
Status parseTurns(const std::vector<std::string> &words, TrainingSpec &spec);

/// The words of the command line, as the flags take them. An unknown word is an error that lists the known ones.
Result<AttachedLoss> parseLoss(const std::string &word);
Result<Optimizer> parseOptimizer(const std::string &word);
Result<InitialValues> parseInitialValues(const std::string &word);
/// W0,W1,... or @FILE with a number a line: a weight of 0 or more for each class, one of them above 0.
Result<std::vector<double>> parseClassWeights(const std::string &word);
/// Likewise: weights above 0, one or one for each class.
Result<std::vector<double>> parsePosWeights(const std::string &word);
/// Adds `MODE` or `MODE:REGEX` or `synchronized,ranks=N` to the spec.
Status parseBatchNorm(const std::string &word, TrainingSpec &spec);
/// `lora[,rank=N][,alpha=X][,dropout=P][,rslora][,targets=REGEX]`; the expression is the rest of the word.
Result<AdapterRequest> parseAdapter(const std::string &word);
/// `bf16`, or `int8` or `int4` with `,group=N`; bf16 goes not with --precision=fp16.
Result<FrozenForm> parseFrozen(const std::string &word, const std::string &precision);
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
