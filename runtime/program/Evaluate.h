// SPDX-License-Identifier: Apache-2.0
// --evaluate: mean loss and accuracy over all whole batches of a data set, in the training arena, with running
// statistics and without dropout. Parameters and state are not touched.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Dataset.h"

#include <optional>

namespace sluice {

struct Evaluation {
  double loss = 0;                ///< mean over batches of the batch means: the mean over samples
  std::optional<double> accuracy; ///< absent where counting right answers has no meaning
  int64_t samples = 0;
};

/// Overwrites both batch slots: a training batch that was prefetched has to be fetched again. Nothing when a signal
/// that InterruptGuard notes ended it.
std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset);

} // namespace sluice
