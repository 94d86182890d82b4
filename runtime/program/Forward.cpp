// SPDX-License-Identifier: Apache-2.0
// Batches come as in training, one ahead.

#include "runtime/program/Forward.h"

#include "runtime/program/Interrupt.h"

namespace sluice {

bool forwardAll(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                const std::vector<ForwardBatch> &list, const std::function<void(size_t, const Batches &)> &done) {
  Batches batches(session, program, dataset);
  session.synchronize();
  if (!list.empty())
    batches.prefetchAlone({0, list[0].first});
  for (size_t i = 0; i < list.size(); ++i) {
    if (interruptedBy())
      return false;
    batches.advance();
    // The count's slot may share bytes with the batch's own activations, so it is cleared every time.
    const int64_t none = 0;
    if (program.correct.present)
      session.write(program.correct, &none);
    const int turn = program.turnCount > 0 ? program.turnCount - 1 : program.ownTurn; // the last one predicts
    session.enqueue(entry.evaluateOf(turn >= 0 ? turn : batches.bucket()));
    if (i + 1 < list.size()) {
      batches.prefetch({0, list[i + 1].first});
      batches.waitedSeconds();
    }
    session.synchronize();
    done(i, batches);
  }
  return true;
}

} // namespace sluice
