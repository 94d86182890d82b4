// SPDX-License-Identifier: Apache-2.0
// --profile-errors: what lossy codecs do to the gradients, tensor by tensor, for sluicec --error-budget.
//
// A step runs on a batch of the data, once as it is and once for each kept activation and each packed form that it can
// have, with that activation packed and unpacked between its forward and its backward readers. The error is |g' - g| /
// |g|, Euclidean, over the gradients of all trained parameters as one vector. Nothing is updated meanwhile but states
// of optimizers and running statistics, so it comes after all that a run writes.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Dataset.h"

#include <string>
#include <vector>

namespace sluice {

struct TensorError {
  std::string tensor;
  Codec codec;
  double error; ///< infinite: the codec refuses a value of the tensor, or leaves nothing of the gradients
};

/// Bytes that measuring takes at the end of the device arena: the largest packed form of any of the activations.
size_t scratchOfErrors(const Program &program);

/// Root of the mean square over the first `batches` batches, of each form of each kept activation; weights stay as they
/// are. Says on standard output how far it is. `scratch`: where the arena has scratchOfErrors() bytes. Blocks until the
/// last step has run; throws Interrupted where a signal asked to end.
std::vector<TensorError> measureErrors(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                       int64_t batches, size_t scratch);

} // namespace sluice
