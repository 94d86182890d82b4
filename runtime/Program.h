// SPDX-License-Identifier: Apache-2.0
// What a generated program tells the runtime about itself, and the main loop that it hands itself to: arguments, data, log, progress,
// checkpoints, evaluation, export. Everything here is plain data in the generated file.
#pragma once

#include "runtime/Stream.h"

#include <vector>

namespace sluice {

/// Parameter: trained. State: BatchNorm running statistics. Constant: never written. Optimizer: momentum and moments.
enum class Role { Parameter, State, Constant, Optimizer };

/// How a variable gets its first value. File: by name from the weights file beside the program. Zero/One: filled. Draw rules are keyed by
/// (seed, name), so both targets draw the same bits. Kaiming: normal, std = sqrt(2 / fanIn). Xavier: uniform, +-sqrt(6/(fanIn+fanOut)).
enum class Init { File, Zero, One, Kaiming, Xavier };

struct Variable {
  const char *name; ///< ONNX name; optimizer state is "<parameter>/momentum", "/exp_avg", "/exp_avg_sq"
  Tensor tensor;    ///< device slot, live through the whole program
  Role role;
  Init init;
  int64_t fanIn = 0, fanOut = 0;
  int64_t exportOffset = -1; ///< byte offset of its raw data in the export template, -1: not in it
};

/// One model input or the target: its device slots (the next batch arrives while a step runs) and its staging slot in host memory.
struct Input {
  const char *name;  ///< ONNX input name; "target" for the labels
  Tensor slots[2];
  Tensor staging;
  int64_t upperBound = 0; ///< I64: values must lie in [0, upperBound); 0: unchecked
};

struct PlanRow { ///< one line of --plan
  const char *tensor, *node, *action;
  int64_t bytes;
  int firstStep, lastStep;
};

struct Program {
  const char *model, *commandLine, *strategy;
  int64_t batch;
  size_t deviceBytes, hostBytes;     ///< exact arena sizes
  size_t deviceBase;                 ///< bytes live through the whole step
  int threads;                       ///< that the plan was made for
  int events;                        ///< number of events used
  double predictedSecondsPerStep;
  const Variable *variables;
  int variableCount;
  const Input *inputs;               ///< model inputs in order, then the target (absent when the graph ends in its own loss)
  int inputCount;
  const PlanRow *plan;
  int planRows;
  Tensor loss;                       ///< F32 scalar
  Tensor correct;                    ///< I64 scalar counted by evaluate, absent when accuracy has no meaning
  const char *weightsFile;           ///< name beside the executable, or null when nothing is read
  const char *exportTemplate;        ///< name beside the executable, or null
  enum class Optimizer { Sgd, Adam, AdamW } optimizer;
  const char *lossName;
};

/// A gradient that --dump-gradients writes: captured right after it is computed in the first step, before its update.
/// Generated code calls Session::captureGradient for it.

/// Runs the program: parses arguments, builds the kernels (makeKernels; it may throw for a workspace that outgrew its slot: exit 3),
/// announces the bytes, allocates, trains. `step` and `evaluate` enqueue one whole step or one evaluation batch. Returns the exit status.
struct Entry {
  std::function<void()> makeKernels;
  std::function<void(Session &)> step;
  std::function<void(Session &)> evaluate;
};
int run(int argc, char **argv, const Program &program, const Entry &entry);

} // namespace sluice
