// SPDX-License-Identifier: Apache-2.0
// Enqueueing a step returns at once, so the main thread is free to gather while the step runs, with the data set's
// other workers beside it.

#include "runtime/program/Batches.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/program/Turns.h"

#include <algorithm>
#include <cstdio>

namespace sluice {

/// Of the loss of an output; null: all classes weigh 1.
static const float *classWeightsOf(const Program &program, int output) {
  return program.classWeights ? program.classWeights[output] : nullptr;
}

/// Whether the loss of this output may leave out targets.
static bool mayIgnore(const Program &program, const Output &output) {
  return output.target >= 0 && program.inputs[output.target].ignoreIndex != Loss::none && !hasLoss(output, "mse") &&
         !hasLoss(output, "ctc");
}

/// Of a sum, cross-entropies of the same target are means over the same.
static bool countAlike(const Program &program) {
  int losses = 0, like = 0;
  for (int i = 0; i < program.outputCount && program.outputs[i].part.present; ++i, ++losses)
    like += hasCrossEntropy(program.outputs[i]) && !classWeightsOf(program, i) &&
            program.outputs[i].target == program.outputs[0].target;
  return losses <= 1 || like == losses;
}

std::string doubtsOfAccumulation(const Program &program) {
  if (countAlike(program))
    return "";
  std::string which;
  for (int i = 0; i < program.outputCount; ++i) {
    const Output &output = program.outputs[i];
    const char *why = classWeightsOf(program, i)   ? "weighs its targets by class"
                      : mayIgnore(program, output) ? "leaves out targets that are ignored"
                                                   : nullptr;
    if (output.part.present && why)
      which += text(which.empty() ? "'" : ", that of '", output.name, "' ", why);
  }
  return which.empty() ? ""
                       : text("of a sum of losses each batch of a step counts alike, but that of ", which,
                              ": where batches differ in how many count, a step is not that of one large batch");
}

void warnOfUnevenBatches(const std::string &name, const Program &program, int64_t batches) {
  if (const std::string doubts = doubtsOfAccumulation(program); !doubts.empty() && batches > 1)
    std::fprintf(stderr, "%s: warning: %s\n", printable(name).c_str(), printable(doubts).c_str());
}

static std::vector<Program> turnsOf(const Program &program) {
  std::vector<Program> turns;
  for (int i = 0; i < std::max(1, program.turnCount); ++i)
    turns.push_back(ofTurn(program, i));
  return turns;
}

Batches::Batches(Session &session, const Program &program, Dataset &dataset)
    : session(session), program(program), dataset(dataset), turns(turnsOf(program)) {}

/// All losses of a sum are means over the same targets, or there is nothing that they share but samples.
Counted Batches::counted(int turn) const {
  const auto number = static_cast<size_t>(turn);
  const std::vector<Counted> &own = countedNow[number];
  return countAlike(turns[number]) && !own.empty() ? own[0] : Counted::all(program.batch);
}

/// Of the batch that lies in the staging slots, by the loss of one output; `program` is as such batches have it.
static Counted countTargets(Session &session, const Program &program, int number) {
  const Output &output = program.outputs[number];
  const float *weights = classWeightsOf(program, number);
  if (output.target < 0 || program.otherMean || hasLoss(output, "ctc"))
    return Counted::all(program.batch);
  const Input &target = program.inputs[output.target];
  const int64_t all = target.staging.shape.elements();
  if (!weights && !mayIgnore(program, output))
    return Counted::all(all);
  const void *values = session.toDevice.address(target.staging);
  if (target.staging.type == DataType::F32) {
    const auto *first = static_cast<const float *>(values);
    Counted counted = Counted::all(all - std::count(first, first + all, static_cast<float>(target.ignoreIndex)));
    counted.among = all;
    return counted;
  }
  const auto *first = static_cast<const int64_t *>(values);
  Counted counted = {0, 0, all};
  for (int64_t i = 0; i < all; ++i) {
    const bool counts = first[i] != target.ignoreIndex;
    counted.targets += counts;
    counted.weight += !counts ? 0 : weights ? static_cast<double>(weights[first[i]]) : 1;
  }
  return counted;
}

void Batches::gather(Position position, Stream &copies) {
  bucketNext = dataset.bucketAt(position);
  const Program &shape = dataset.shape(bucketNext);
  std::vector<void *> staging;
  for (int i = 0; i < program.inputCount; ++i)
    staging.push_back(session.toDevice.address(shape.inputs[i].staging));
  dataset.gather(position, staging);
  countedNext.assign(turns.size(), {});
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    const Program &own = program.bucketCount > 0 ? shape : turns[turn]; // buckets have no turns
    for (int i = 0; i < own.outputCount; ++i)
      countedNext[turn].push_back(countTargets(session, own, i));
  }
  gathered = Clock::now();
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &input = shape.inputs[i];
    copyToDevice(copies, input.staging, session.nextBatch(input.slots), {input.name, OpRole::Batch});
  }
}

void Batches::prefetch(Position position) {
  // A thread of its own sees the step's end: this one is busy, and the copies must follow its gathering at once.
  stepEnd = std::async(std::launch::async, [wait = session.stepEnd()] {
    wait();
    return Clock::now();
  });
  gather(position, session.toDevice);
}

void Batches::prefetchAlone(Position position) {
  prefetchForOne(position);
  session.synchronize();
}

void Batches::prefetchForOne(Position position) {
  gather(position, session.compute); // threads of copies leave the cores to others, and a step waits for this one
}

double Batches::waitedSeconds() {
  return stepEnd.valid() ? std::max(0.0, std::chrono::duration<double>(gathered - stepEnd.get()).count()) : 0;
}

void Batches::advance() {
  session.batchParity = 1 - session.batchParity;
  bucketNow = bucketNext;
  countedNow = countedNext;
}

} // namespace sluice
