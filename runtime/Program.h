// SPDX-License-Identifier: Apache-2.0
// What a generated program tells the runtime about itself, and the main loop that it hands itself to: arguments, data,
// log, progress, checkpoints, evaluation, export. Everything here is plain data in the generated file.
#pragma once

#include "runtime/Engines.h"
#include "runtime/Kernels.h"
#include "runtime/PackedForms.h"
#include "runtime/Quantization.h"
#include "runtime/Ranks.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace sluice {

/// Parameter: trained. State: BatchNorm running statistics. Constant: never written. Optimizer: momentum, moments and
/// averages. Gradient: sums over the batches of a step, which mean nothing between steps. Cache: what evaluations leave
/// for the decode step, which means nothing to a later run.
enum class Role { Parameter, State, Constant, Optimizer, Gradient, Cache };

/// How a variable gets its first value. File: by name from the weights file beside the program. Zero/One: filled. Draw
/// rules are keyed by (seed, name), so both targets draw the same bits. Kaiming: normal, std = sqrt(2 / fanIn). Xavier:
/// uniform, +-sqrt(6/(fanIn+fanOut)). Copy: what another variable has. Norm: how long the weights of each output of an
/// adapter's base are, once that has its values.
enum class Init { File, Zero, One, Kaiming, Xavier, Copy, Norm };

struct Variable {
  const char *name; ///< ONNX name; optimizer state is "<parameter>/momentum", "/exp_avg", "/ema" and so on
  Tensor tensor;    ///< its slot, live through the whole program, in the arena where it is at home (--state-home); of a
                    ///< form of fewer bits its bytes, or BF16
  Role role;
  Init init;
  int64_t fanIn = 0, fanOut = 0;
  int64_t exportOffset = -1;    ///< byte offset of its data in the export template, 0 without one; -1: not the model's
  const char *source = nullptr; ///< Init::Copy: name of the other variable
  Quantization form = {};       ///< in which `tensor` holds a matrix of floats, a constant
  /// Of an optimizer's state or a parameter of which `tensor` is this rank's share: the whole tensor, of which type and
  /// shape count, or the one that the state belongs to, in the same order; else absent.
  Tensor whole = {};

  /// What checkpoints have of it.
  const Tensor &saved() const { return whole.present ? whole : tensor; }
  /// Type and shape of what files of weights have.
  Tensor asFloats() const { return form ? as(tensor, {form.rows, form.columns}) : saved(); }
};

/// One model input or the target: its device slots (the next batch arrives while a step runs) and its staging slot in
/// host memory.
struct Input {
  const char *name; ///< ONNX input name; "target" for the labels
  Tensor slots[2];
  Tensor staging;
  int64_t upperBound = 0;           ///< I64: values must lie in [lowerBound, upperBound); both 0: unchecked
  int64_t ignoreIndex = Loss::none; ///< one more value that they may have, of targets that do not count
  bool shared = false;              ///< all samples have it in common: its shape has no dimension of samples
  bool ofLossOnly = false;          ///< predictions do not depend on it
  int64_t lowerBound = 0;           ///< INT64_MIN: none, as INT64_MAX is no upperBound
  bool isBounded() const { return lowerBound < upperBound; }
};

/// A value of the model that evaluate leaves, and the loss that is attached to it, if any.
struct Output {
  const char *name;           ///< as in the model
  Tensor tensor = {};         ///< F32, of the batch's samples; absent where only its loss is known
  int target = -1;            ///< index of the input that it is compared with; -1: none
  const char *loss = nullptr; ///< kind of the attached loss, as --loss names it; null: none
  double weight = 1;          ///< of that loss in the sum of all
  Tensor part = {};           ///< F32 scalar as Program::loss, that loss alone; absent where there is no sum
  bool probabilities = false; ///< a softmax or sigmoid made it
};

/// Another name that a variable has in PyTorch's state_dict, where modules share it.
struct TiedName {
  const char *variable, *name;
};

/// A product of two narrow matrices beside a weight, as LoRA has it: what reads x base adds scale * ((x first) second).
/// Names are of variables, which hold their matrices or the transposed ones; of convolutions [outputs, ...] is the
/// matrix [outputs, all else].
struct Adapter {
  const char *base, *first, *second;
  double scale;
  bool baseTransposed, firstTransposed, secondTransposed;
  bool shared; ///< something else reads the base, too
  /// A number for each output, the length that base + scale * first second is brought to (DoRA); null: as it is.
  const char *magnitude = nullptr;
};

/// One line of --plan: a buffer of the step, the form that it is packed in and its copy elsewhere being others. Steps
/// are kernels and copies in the order in which they are issued, from 1, both ends included.
struct PlanRow {
  const char *tensor, *node, *action;
  int64_t bytes;
  int firstStep, lastStep;
  bool host = false; ///< it lies outside the device, in whichever arena takes what is offloaded
};

/// All tensors of the plan that one action takes away. Figures are of one batch.
struct ActionRow {
  const char *action; ///< "offload", "offload fp16", "compress zfp", "encode mask", "recompute"
  OpRole role;        ///< as which its ops are counted; Compute: it has none
  Codec codec;        ///< of those ops
  int tensors;
  int64_t bytes;           ///< of the tensors as they are, not packed
  double predictedSeconds; ///< on the stream where the work is done, waits not included
};

/// What all kernels of one name do in one batch, as traces and profiles name them.
struct WorkRow {
  const char *node, *op;
  int calls;            ///< that are recorded
  double flops, bytes;  ///< operations; bytes read and written, of each tensor once
  Precision arithmetic; ///< of the operations
};

/// An activation that stays on the device between its forward and its backward readers, and could be packed.
struct KeptActivation {
  const char *name;
  Tensor tensor;
  Comparison compared;
};

/// One of the shapes that a batch may have: the program's inputs and outputs, in their order, with the extents that
/// they have in it, in the same slots.
struct Bucket {
  const char *name; ///< "tokens=128"
  const Input *inputs;
  const Output *outputs;
  double predictedSecondsPerStep;
};

/// One of the turns that steps take: its steps change parameters of their own by losses of their own.
struct TrainingTurn {
  const char *name;      ///< "discriminator"
  int64_t steps;         ///< in a row, before those of the next turn
  const Output *outputs; ///< as Program::outputs, where they are the last turn's
  int outputCount;
  bool otherMean;                   ///< likewise
  const float *const *classWeights; ///< likewise
  bool countsAnswers;               ///< its evaluation adds to Program::correct
  double predictedSecondsPerStep;
};

struct Program {
  const char *model, *commandLine, *strategy;
  const char *identity = nullptr;    ///< of the model, whatever its batch and its plan; null: not known
  const char *preparation = nullptr; ///< of the weights in the model's file, as textOf(Preparation); null: not known
  int64_t batch;
  size_t deviceBytes, hostBytes; ///< exact arena sizes
  size_t hostBudget = 0;         ///< that the plan was made for; 0: no limit
  ArenaSizes others = {};
  size_t deviceBase;         ///< bytes live through the whole step
  int threads;               ///< that the plan was made for
  int level;                 ///< of x86-64 that vendor primitives may use, see limitInstructions()
  size_t workspaceLimit = 0; ///< --workspace-limit of the plan
  Precision precision;
  const EngineChoice *engines = nullptr; ///< that a profile recorded
  int engineCount = 0;
  int events; ///< number of events used
  double predictedSecondsPerStep;
  double predictedSecondsOfLongest; ///< of its kernels and copies
  const Variable *variables;        ///< names are unique
  int variableCount;
  const TiedName *tied = nullptr; ///< those of one variable in the order of their use
  int tiedCount = 0;
  const Adapter *adapters = nullptr;
  int adapterCount = 0;
  const Input *inputs; ///< model inputs in order, then the target (absent when the graph ends in its own loss)
  int inputCount;
  const PlanRow *plan;
  int planRows;
  const ActionRow *actions;
  int actionRows;
  const WorkRow *work = nullptr; ///< of one batch of a step
  int workRows = 0;
  const KeptActivation *kept = nullptr; ///< those that a step shows
  int keptCount = 0;
  Tensor loss;      ///< F32 scalar, readable after a step until the next begins
  Tensor correct;   ///< I64 scalar that evaluate adds its right answers to, absent when accuracy has no meaning
  Tensor norm = {}; ///< F32 scalar as `loss`, the norm of all gradients; absent unless they can be clipped by it
  const Output *outputs = nullptr; ///< those with a loss first; the first one is what is measured unless more is said
  int outputCount = 0;
  bool otherMean = false;               ///< the loss is not known to be a mean over the targets that are not ignored
  bool accumulates = false;             ///< a step may have several batches
  bool averages = false;                ///< parameters have running averages, which evaluate and export use
  bool sharesGradients = false;         ///< each of several ranks gets its share of the summed gradients alone
  const char *reduce = nullptr;         ///< for several ranks: whose sums are "ordered", or "fast"
  int64_t mostBatches = 0;              ///< that an ordered sum takes of a rank; 0: no limit
  int leastRanks = 1;                   ///< each of which has room for its share of the optimizer's states
  int normRanks = 1;                    ///< whose batches are normalized together; they divide the ranks of a run
  const char *weightsFile = nullptr;    ///< name beside the executable, or null when nothing is read
  const char *exportTemplate = nullptr; ///< name beside the executable, or null
  enum class Optimizer { Sgd, Adam, AdamW, Adagrad, RmsProp, Lamb, Lion } optimizer;
  /// Of each of outputs what the classes of its target weigh in its loss, null: all weigh 1. Null where all do in all
  /// losses; else several ops compute the loss.
  const float *const *classWeights = nullptr;
  /// From the smallest to the largest, whose inputs and outputs are those above; none: all batches have one shape.
  const Bucket *buckets = nullptr;
  int bucketCount = 0;
  /// In the order in which they alternate; none: all steps are alike. Then there are no buckets.
  const TrainingTurn *turns = nullptr;
  int turnCount = 0;
  int ownTurn = -1; ///< of the program as one turn has it (ofTurn()): its number, and that of its functions in Entry
  /// The shape of the decode step (Entry::decode), one token of each text: of its outputs one is present. Null where
  /// there is no such step.
  const Bucket *decode = nullptr;
  Tensor places = {}; ///< I64 [batch]: where in its text each token of a decode step stands
};

/// The program as it is for batches of each of its shapes, from the smallest to the largest.
inline std::vector<Program> shapesOf(const Program &program) {
  std::vector<Program> shapes(static_cast<size_t>(std::max(1, program.bucketCount)), program);
  for (int i = 0; i < program.bucketCount; ++i) {
    const Bucket &bucket = program.buckets[i];
    Program &shape = shapes[static_cast<size_t>(i)];
    shape.inputs = bucket.inputs;
    shape.outputs = bucket.outputs;
    shape.predictedSecondsPerStep = bucket.predictedSecondsPerStep;
  }
  return shapes;
}

/// Whether the loss is attached and of this kind, as --loss names it.
inline bool hasLoss(const Output &output, const char *kind) {
  return output.loss && std::string_view(output.loss) == kind;
}
/// Whether classes are compared in a cross-entropy that is attached.
inline bool hasCrossEntropy(const Output &output) {
  return hasLoss(output, "softmax-cross-entropy") || hasLoss(output, "token-cross-entropy");
}

/// Marks functions that are long sequences of calls, run once or once a step: there is nothing in them to optimize, and
/// compilers spend more time on trying, quadratic in their length, than on all kernels. ("O0" would not share the stack
/// between calls.)
#if defined(__GNUC__) && !defined(__clang__)
#define SLUICE_SEQUENCE __attribute__((noinline, optimize("Og")))
#else
#define SLUICE_SEQUENCE
#endif

/// Shows an activation that the plan keeps, right before the first op of the backward half that reads it. Does nothing
/// but while --profile-errors measures, which may enqueue on the compute stream then.
void showActivation(Session &session, const char *name, const Tensor &activation);

/// The program's functions. makeKernels creates all kernels (setThreads was called) and checks each against its slot.
/// `step` enqueues one batch of a step, the last of which changes parameters, `evaluate` one evaluation batch; both
/// return at once. Inputs lie in Session::batch(slots). Nothing of another batch is running when either is called (but
/// see Session::runsAhead()), and neither copies input batches: run() gathers the next batch into the staging slots
/// while a step runs and copies it into Session::nextBatch(slots) on the toDevice stream. A step calls
/// Session::captureGradient right before each parameter's update, and showActivation() for each of Program::kept.
/// `evaluate` writes `loss`, adds to `correct`, which is cleared before, and changes no variable. With several shapes
/// both are those of the largest, with turns of the last one, and `buckets` has those of all.
struct Entry {
  struct Functions {
    std::function<void(Session &)> step, evaluate;
  };

  std::function<void()> makeKernels;
  std::function<void(Session &)> step;
  std::function<void(Session &)> evaluate; ///< empty: --evaluate is refused
  /// Joins the others that were started with this process; null: the program is for one.
  std::unique_ptr<Ranks> (*joinRanks)() = nullptr;
  std::vector<Functions> buckets = {}; ///< in the order of Program::buckets, or Program::turns; empty without those
  /// Enqueues a decode step: of each text the token in the current batch's slots, at its place of Program::places. What
  /// it sees of the tokens before is what an evaluation of any shape, and decode steps after it, have left in the
  /// caches for this text, by its number in the batch. Empty: there is none.
  std::function<void(Session &)> decode = {};

  const std::function<void(Session &)> &stepOf(int bucket) const {
    return buckets.empty() ? step : buckets[static_cast<size_t>(bucket)].step;
  }
  /// Of a bucket or a turn.
  const std::function<void(Session &)> &evaluateOf(int bucket) const {
    return buckets.empty() ? evaluate : buckets[static_cast<size_t>(bucket)].evaluate;
  }
};

/// Arguments -> data and output files -> kernels and primitives -> announce the exact bytes -> allocate -> first values
/// or checkpoint -> train, evaluate, export. Returns the exit status; errors go to standard error in one line.
int run(int argc, char **argv, const Program &program, const Entry &entry);

} // namespace sluice
