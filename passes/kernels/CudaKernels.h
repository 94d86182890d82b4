// SPDX-License-Identifier: Apache-2.0
// What the cuda runtime's kernels reserve, asked without a GPU: sizes follow from shapes and the limit alone.
#pragma once

#include "passes/kernels/ChooseAlgorithms.h"

namespace sluice {

/// What the cuda target's kernel of the op can be granted, the most first: `limit` at most but for gradients of
/// attentions, which may have up to 1 GiB where the limit was not given by the user. Which engine runs is known on the
/// GPU only, so that the slowness of smaller grants is a guess: that of the implicit product without a workspace. An
/// error names an op that no kernel computes.
mlir::FailureOr<std::vector<KernelAlgorithm>> cudaAlgorithms(mlir::Operation *op, int64_t limit, bool given);

} // namespace sluice
