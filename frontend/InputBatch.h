// SPDX-License-Identifier: Apache-2.0
// The number of samples that the inputs have in common. No MLIR in here.
#ifndef SLUICE_FRONTEND_INPUT_BATCH_H
#define SLUICE_FRONTEND_INPUT_BATCH_H

#include "frontend/TrainingSpec.h"

namespace sluice {

struct OnnxGraph;

/// Sets `graph.batch` to what all of `graph.inputs` but shared ones have along their batchDim. An error where they have
/// several, or none, says with which flags they would have one.
Status findBatch(const TrainingSpec &spec, OnnxGraph &graph);

} // namespace sluice

#endif
