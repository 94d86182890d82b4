// SPDX-License-Identifier: Apache-2.0
// The program's evaluate function over a data set from its first sample to its last, in the training arena, with
// running statistics and without dropout. Parameters and state are not touched.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Batches.h"

#include <functional>
#include <vector>

namespace sluice {

/// One call of evaluate for each of Dataset::forwardBatches(), or of batches that begin at one of their samples.
using ForwardBatch = BucketBatch;

/// Runs evaluate on each and returns when all have run; the next one is gathered meanwhile. `done` is called in order
/// when a batch's results can be read, with its index, the session synchronized. Overwrites both batch slots: a
/// training batch that was prefetched has to be fetched again. False when a signal that InterruptGuard notes, or a
/// CancelScope, ended it.
bool forwardAll(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                const std::vector<ForwardBatch> &batches, const std::function<void(size_t, const Batches &)> &done);

} // namespace sluice
