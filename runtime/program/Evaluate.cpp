// SPDX-License-Identifier: Apache-2.0
// The program's own evaluate function does the work; batches come as in training, one ahead.

#include "runtime/program/Evaluate.h"

#include "runtime/program/Batches.h"
#include "runtime/program/Interrupt.h"

#include <algorithm>

namespace sluice {

/// Answers in the batch that lies in the staging slot: its samples, or its pixels or tokens where each has a class, but
/// for targets that are ignored.
static int64_t answers(Session &session, const Program &program) {
  const Input &target = program.inputs[program.inputCount - 1];
  const int64_t all = target.staging.shape.elements();
  if (target.ignoreIndex == Loss::none)
    return all;
  const auto *classes = static_cast<const int64_t *>(session.toDevice.address(target.staging));
  return all - std::count(classes, classes + all, target.ignoreIndex);
}

std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset) {
  Batches batches(session, program, dataset);
  Evaluation result;
  int64_t batchCount = dataset.batches(), correct = 0, answered = 0;
  result.samples = batchCount * program.batch;

  session.synchronize();
  batches.prefetch({0, 0});
  answered += answers(session, program);
  for (int64_t i = 0; i < batchCount; ++i) {
    session.synchronize();
    if (interruptedBy())
      return std::nullopt;
    batches.advance();
    // The count's slot may share bytes with the batch's own activations, so it is cleared and read every time.
    int64_t counted = 0;
    if (program.correct.present)
      session.write(program.correct, &counted);
    session.enqueue(entry.evaluate);
    if (i + 1 < batchCount) {
      batches.prefetch({0, (i + 1) * program.batch});
      answered += answers(session, program);
    }
    session.synchronize();
    float loss = 0;
    session.read(program.loss, &loss);
    result.loss += static_cast<double>(loss);
    if (program.correct.present) {
      session.read(program.correct, &counted);
      correct += counted;
    }
  }
  result.loss /= static_cast<double>(batchCount);
  if (program.correct.present && answered > 0)
    result.accuracy = static_cast<double>(correct) / static_cast<double>(answered);
  return result;
}

} // namespace sluice
