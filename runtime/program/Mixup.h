// SPDX-License-Identifier: Apache-2.0
// --mixup (Zhang et al. 2018, "mixup: beyond empirical risk minimization"): each sample of a training batch becomes
// share x + (1 - share) y, y being the sample before it in the batch (before the first one: the last), as torchvision's
// references have it. Floats are mixed when a batch is gathered; of class ids the loss takes both (MixedClasses in
// LossRules.h). No plan knows of it.
#pragma once

#include "runtime/Program.h"

namespace sluice {

/// Throws UsageError where a batch has values that cannot be mixed, or one sample.
void requireMixable(const Program &program);

/// The share of one batch: drawn from Beta(alpha, alpha), alpha > 0, as a function of `key` alone.
float mixupShare(double alpha, uint64_t key);

/// Mixes in place: `samples` samples of `elements` floats each, one after the other.
void mixSamples(float *values, int64_t samples, int64_t elements, float share);

} // namespace sluice
