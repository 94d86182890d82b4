// SPDX-License-Identifier: Apache-2.0
// sluicec --max-batch: the largest batch whose training step fits the budget.
#pragma once

#include "frontend/OnnxFile.h"
#include "tools/Driver.h"

namespace sluice {

/// Imports and plans the model for one batch after the other: doubled until one does not fit, then halved between. What
/// fits one batch is taken to fit the smaller ones. Prints the batch, its predicted time and throughput, and what the
/// next one needs; returns the exit status, 3 when not even batch 1 fits.
int printMaxBatch(const DriverOptions &options, OnnxFile &file);

} // namespace sluice
